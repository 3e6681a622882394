// Many runs in child processes with bounds, so that one that crashes, hangs or takes all memory is
// known by its number, and the next continues behind it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace collect::ctl::testing {

struct Bounds {
  unsigned wall_seconds = 60;  // of one run; generous, as the machine may be busy
  unsigned cpu_seconds = 10;   // of one run
  uint64_t address_bytes = uint64_t{768} << 20;
  uint64_t file_bytes = uint64_t{64} << 20;
};

struct Failure {
  uint64_t number = 0;
  std::string what;
};

// Calls `run` with every number in [first, end), in order, in children of a few hundred runs each.
// It returns what was wrong, or an empty string. Ends after `most` failures. The memory that a
// child may map is not bounded under a sanitizer.
std::vector<Failure> run_bounded(uint64_t first, uint64_t end, const Bounds& bounds, size_t most,
                                 const std::function<std::string(uint64_t)>& run);

}  // namespace collect::ctl::testing
