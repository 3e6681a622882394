// Writes the code that a window's jump leads to: the window's instructions, moved, with a sled
// where the function begins and where it is left. PATCH.md "Stubs".
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/patch/planner/instruction.h"
#include "daemon/patch/planner/windows.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

struct Stubs {
  std::vector<uint8_t> region = std::vector<uint8_t>(kStubsBegin);
  std::vector<PlanSite> sites;
  std::vector<PlanSled> sleds;
  std::vector<uint32_t> relatives;
  std::vector<uint32_t> absolutes;
};

// Writes the stub of the function at `function`. The window's bytes are those of the file,
// `original`.
void write_stub(const PartCode& code, const Window& window, Bytes original, uint32_t function,
                Stubs& stubs);

}  // namespace collect::patch
