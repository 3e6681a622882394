// One arm64 instruction, as far as moving it and following it needs. Our own decoder: of some 1,000
// encodings, only those that read the program counter or change it matter.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/patch/planner/instruction.h"
#include "formats/core/bytes.h"

namespace collect::patch {

inline constexpr uint32_t kWordBytes = 4;
inline constexpr uint32_t kArm64Link = 30;  // the register with the return address
inline constexpr uint32_t kArm64Nop = 0xD503201F;

// The forms whose meaning depends on where they are.
enum class PcForm : uint8_t {
  kNone,
  kAddress,  // adr
  kPage,     // adrp
  kLoad,     // ldr, ldrsw or prfm of a literal
  kBranch,   // b
  kCall,     // bl
  kIf,       // b.cond, bc.cond, cbz, cbnz
  kTestBit,  // tbz, tbnz
};
PcForm pc_form(uint32_t word);
// What a word of such a form leads to.
uint32_t pc_target(uint32_t word, uint32_t address);

// False: no instruction.
bool decode_arm64(uint32_t word, uint32_t address, Instruction& instruction);

// As decode_all() and jump_shape(), which choose between these and those of x86-64. Addresses that
// adrp and add make together are taken by the add.
bool decode_all_arm64(Bytes code, uint32_t begin, std::vector<Instruction>& instructions);
JumpShape arm64_jump_shape(Bytes code, const std::vector<Instruction>& instructions, size_t index);

// The table of the jump at `instructions[index]`: to an address in the code, which an entry is
// added to.
struct JumpTable {
  uint32_t address = 0;
  uint32_t base = 0;
  uint32_t count = 0;  // 0: not known
  uint8_t entry_bytes = 4;
  uint8_t shift = 0;  // of an entry
  bool is_signed = true;
};
// False: it has none, or one of a form that compilers do not write.
bool find_arm64_table(Bytes code, const std::vector<Instruction>& instructions, size_t index,
                      JumpTable& table);

// Whether the jump leads to the sum of a place in the same code and an entry that is a number of
// instructions: assemblers can count these within a section alone, wherever the table may be.
bool stays_by_arm64_table(Bytes code, const std::vector<Instruction>& instructions, size_t index);

}  // namespace collect::patch
