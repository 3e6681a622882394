// One instruction, as far as moving it and following it needs. Those of x86-64 are decoded by
// Zydis, which this file's source alone knows; of arm64: arm64_instruction.h.
#pragma once

#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/patch/plan_layout.h"

namespace collect::patch {

inline constexpr size_t kShapeLook = 12;  // instructions before an indirect jump

enum class Flow : uint8_t {
  kOn,            // to the next instruction
  kPadding,       // nop
  kTrap,          // int3: padding that no one may reach
  kStop,          // ud2, hlt
  kJump,          // to `target`
  kBranch,        // to `target` or on
  kShortBranch,   // loop, jrcxz: the same, in no longer form
  kIndirectJump,  //
  kCall,          // of `target`, then on
  kIndirectCall,  //
  kReturn,
};

struct Instruction {
  uint32_t address = 0;
  uint32_t target = 0;  // of a jump, branch or call; or the address that `distance_at` leads to
  uint8_t length = 0;
  Flow flow = Flow::kOn;
  uint8_t condition = 0;    // of a branch: the low half of its opcode
  uint8_t distance_at = 0;  // offset in it of a distance from rip; 0: none
  bool is_landing = false;  // endbr64; bti, paciasp
  bool is_movable = true;
  bool takes_address = false;  // lea, adr of `target`
  bool reads_target = false;   // arm64: loads what is there
  uint32_t value = 0;          // an immediate or a displacement that may be an address; 0: none

  uint32_t end() const { return address + length; }
  bool goes_on() const {
    return flow == Flow::kOn || flow == Flow::kPadding || flow == Flow::kBranch ||
           flow == Flow::kShortBranch || flow == Flow::kCall || flow == Flow::kIndirectCall;
  }
  bool is_filling() const { return flow == Flow::kPadding || flow == Flow::kTrap; }
};

// Decodes x86-64. False: no instruction, or cut off.
bool decode(Bytes code, uint32_t address, Instruction& instruction);

// Everything from `begin` to the end of `code`. False: it does not end with an instruction's end;
// those up to there are in `instructions`.
bool decode_all(Processor processor, Bytes code, uint32_t begin,
                std::vector<Instruction>& instructions);

// What an indirect jump is likely to be.
enum class JumpShape : uint8_t {
  kSlot,      // through a word at a fixed address: of another module's function
  kDistance,  // one of a table's entries, which are distances from somewhere
  kEntry,     // one of a table's entries, which are addresses
  kPointer,   // a pointer from memory or a register that was not computed from a table
  kUnknown,
};
// The shape of the jump at `instructions[index]`; looks at what leads there in a straight line.
JumpShape jump_shape(Processor processor, Bytes code, uint32_t begin,
                     const std::vector<Instruction>& instructions, size_t index);

}  // namespace collect::patch
