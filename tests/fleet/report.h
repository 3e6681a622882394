// What the parts of a fleet found out, added up and printed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fleet/fleet.h"

namespace collect::fleet {

// Of a process that simulated a part.
struct OwnUse {
  uint64_t peak_memory_bytes = 0;
  uint64_t cpu_ns = 0;
};
OwnUse own_use();

struct Totals {
  FleetResult fleet;
  OwnUse use;

  // The promise.
  bool is_kept() const { return fleet.audit.violation_count == 0; }
};

void write_figures(int pipe, const FleetResult& result, const OwnUse& use);
// To the totals. False: there are none.
bool read_figures(int pipe, Totals& totals);
void print_report(const FleetSettings& settings, const Totals& totals, uint64_t wall_ns);

}  // namespace collect::fleet
