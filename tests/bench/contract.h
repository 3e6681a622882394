// How a benchmark says where it is: one line for each promise of the performance contract, with
// the promise beside what was measured. Ratios of things measured in the same run.
#pragma once

#include <string>

namespace collect::bench {

enum class Side { kAtMost, kAtLeast };

// "hot path, recording            1.21x   contract ≤ 1.35x   met"
void report(const std::string& what, double measured, Side side, double promised,
            const std::string& unit, int decimals = 2);
// A figure that nothing is promised about.
void mention(const std::string& what, double measured, const std::string& unit, int decimals = 2);

}  // namespace collect::bench
