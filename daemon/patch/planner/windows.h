// Which bytes of a function are replaced by jumps: pure arithmetic over its instructions. PATCH.md
// "Windows".
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/patch/planner/code_map.h"
#include "daemon/patch/planner/instruction.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

// How a function is left at an instruction.
struct Exit {
  uint32_t index = 0;  // of the instruction
  SledUse use = SledUse::kExit;
};

// Instructions that move into one stub. [begin, end) are indices; the bytes may reach into padding
// behind the last one.
struct Window {
  uint32_t begin = 0;
  uint32_t end = 0;
  uint32_t bytes = 0;
  bool has_entry = false;
};

// One function, or a part of one.
struct PartCode {
  Bytes bytes;
  std::vector<Instruction> instructions;
  std::vector<Exit> exits;
  uint32_t padding = 0;  // bytes behind it that nothing uses
};

// kNone, and the windows by ascending address; or why there are none.
Refusal find_windows(const CodeMap& map, const PartCode& code, bool has_entry,
                     std::vector<Window>& windows);

// find_windows() for arm64, where a window is one instruction: nothing can lead into it.
Refusal find_arm64_windows(const CodeMap& map, const PartCode& code, bool has_entry,
                           std::vector<Window>& windows);

}  // namespace collect::patch
