#include "daemon/patch/planner/arm64_instruction.h"

#include <array>
#include <optional>

namespace collect::patch {
namespace {

constexpr size_t kTableLook = 256;  // to where its table's address is made
constexpr uint32_t kNoRegister = 31;

constexpr uint32_t bits(uint32_t word, unsigned high, unsigned low) {
  return word >> low & ((uint32_t{1} << (high - low + 1)) - 1);
}
constexpr int64_t signed_bits(uint32_t word, unsigned high, unsigned low) {
  const unsigned width = high - low + 1;
  const auto value = static_cast<int64_t>(bits(word, high, low));
  return value - ((value >> (width - 1)) << width);
}
constexpr uint32_t rd(uint32_t word) {
  return bits(word, 4, 0);
}
constexpr uint32_t rn(uint32_t word) {
  return bits(word, 9, 5);
}
constexpr uint32_t rm(uint32_t word) {
  return bits(word, 20, 16);
}

bool is_branch_group(uint32_t word) {
  return bits(word, 28, 26) == 0b101;
}
bool is_immediate_group(uint32_t word) {
  return bits(word, 28, 26) == 0b100;
}
bool is_register_group(uint32_t word) {
  return bits(word, 27, 25) == 0b101;
}
bool is_memory_group(uint32_t word) {
  return bits(word, 27, 27) == 1 && bits(word, 25, 25) == 0;
}

// br, blr, ret, and what authenticates the address before; eret and drps.
bool decode_register_branch(uint32_t word, Instruction& out) {
  const uint32_t operation = bits(word, 24, 21);
  const uint32_t kind = bits(word, 15, 10);  // 0: plain; 2, 3: authenticated
  if (rm(word) != 0x1F || (kind != 0 && kind != 2 && kind != 3)) return false;
  switch (operation) {
    case 0b0000:
    case 0b1000:
      out.flow = Flow::kIndirectJump;
      return true;
    case 0b0001:
    case 0b1001:
      out.flow = Flow::kIndirectCall;
      return true;
    case 0b0010:
      if (kind == 0 && rd(word) != 0) return false;
      if (kind != 0 && (rn(word) != 0x1F || rd(word) != 0x1F)) return false;
      out.flow = kind != 0 || rn(word) == kArm64Link ? Flow::kReturn : Flow::kIndirectJump;
      return true;
    case 0b0100:
    case 0b0101:
      out.flow = Flow::kStop;
      out.is_movable = false;
      return true;
    default:
      return false;
  }
}

// hint, barriers, system registers: they continue.
void decode_system(uint32_t word, Instruction& out) {
  constexpr uint32_t kPacWithPc = 0xD50324FF;  // pacm: the next one signs with the counter, too
  const bool is_bti = (word & 0xFFFFFF3F) == 0xD503241F && bits(word, 7, 6) != 0;
  const bool is_sign = word == 0xD503233F || word == 0xD503237F;  // paciasp, pacibsp
  out.is_landing = is_bti || is_sign;
  if (word == kArm64Nop) out.flow = Flow::kPadding;
  if (word == kPacWithPc) out.is_movable = false;
}

bool decode_branch_group(uint32_t word, Instruction& out) {
  const uint32_t top = bits(word, 31, 24);
  if (top == 0xD4) {
    const bool is_call = bits(word, 23, 21) == 0 && rd(word) != 0;  // svc, hvc, smc
    if (!is_call) out.flow = Flow::kStop;                           // brk, hlt
    return true;
  }
  if (top == 0xD5) {
    decode_system(word, out);
    return true;
  }
  if (top == 0xD6 || top == 0xD7) return decode_register_branch(word, out);
  switch (pc_form(word)) {
    case PcForm::kBranch:
      out.flow = Flow::kJump;
      return true;
    case PcForm::kCall:
      out.flow = Flow::kCall;
      return true;
    case PcForm::kIf:
    case PcForm::kTestBit:
      out.flow = Flow::kBranch;
      return true;
    default:
      return false;  // what newer processors may compare and jump with
  }
}

// Whether it puts something into a general register.
bool writes(uint32_t word, const Instruction& one, uint32_t reg) {
  if (one.flow == Flow::kCall || one.flow == Flow::kIndirectCall)
    return reg <= 18 || reg == kArm64Link;
  if (is_immediate_group(word) || is_register_group(word)) return rd(word) == reg;
  if (!is_memory_group(word)) return false;
  const bool is_vector = bits(word, 26, 26) != 0;
  switch (bits(word, 29, 27)) {
    case 0b011:
      return !is_vector && bits(word, 24, 24) == 0 && rd(word) == reg;
    case 0b101:
      if (bits(word, 23, 23) != 0 && rn(word) == reg) return true;  // changes its base
      return !is_vector && bits(word, 22, 22) != 0 &&
             (rd(word) == reg || bits(word, 14, 10) == reg);
    case 0b111: {
      const bool is_unscaled = bits(word, 24, 24) == 0 && bits(word, 21, 21) == 0;
      if (is_unscaled && bits(word, 10, 10) != 0 && rn(word) == reg) return true;
      return !is_vector && bits(word, 23, 22) != 0 && rd(word) == reg;
    }
    default:
      return !is_vector && bits(word, 22, 22) != 0 && rd(word) == reg;
  }
}

uint32_t word_at(Bytes code, size_t index) {
  return load_le<uint32_t>(code.data() + index * kWordBytes);
}

// The last instruction before `index` that writes the register.
std::optional<size_t> writer_of(Bytes code, const std::vector<Instruction>& instructions,
                                size_t index, uint32_t reg, size_t look) {
  for (size_t back = 1; back <= look && back <= index; ++back) {
    if (writes(word_at(code, index - back), instructions[index - back], reg)) return index - back;
  }
  return std::nullopt;
}

bool is_add_immediate(uint32_t word) {
  return (word & 0xFF800000) == 0x91000000;
}
// With a shifted or an extended register.
bool is_add_register(uint32_t word) {
  return (word & 0xFF200000) == 0x8B000000 || (word & 0xFFE00000) == 0x8B200000;
}
bool is_load_of_word(uint32_t word) {  // ldr of 64 bits
  return (word & 0xFFC00000) == 0xF9400000 || (word & 0xFFE00000) == 0xF8400000;
}
bool is_indexed_load(uint32_t word) {  // from base and register
  return (word & 0x3F200C00) == 0x38200800 && bits(word, 23, 22) != 0;
}

// How an entry becomes a distance: the add's second operand.
void read_scale(uint32_t add, JumpTable& table) {
  if (bits(add, 21, 21) == 0) {
    table.shift = static_cast<uint8_t>(bits(add, 15, 10));
  } else {
    table.shift = static_cast<uint8_t>(bits(add, 12, 10));
    table.is_signed = table.is_signed || bits(add, 15, 15) != 0;
  }
}

// What the jump at `index` adds up, and which instruction loads the entry; not where the table is.
bool read_sum(Bytes code, const std::vector<Instruction>& instructions, size_t index,
              JumpTable& table, size_t& load_index) {
  const auto add = writer_of(code, instructions, index, rn(word_at(code, index)), kShapeLook);
  if (!add || !is_add_register(word_at(code, *add))) return false;
  const uint32_t sum = word_at(code, *add);
  const auto base = writer_of(code, instructions, *add, rn(sum), kTableLook);
  if (!base || pc_form(word_at(code, *base)) != PcForm::kAddress) return false;
  const auto load = writer_of(code, instructions, *add, rm(sum), kShapeLook);
  if (!load || !is_indexed_load(word_at(code, *load))) return false;
  const uint32_t loaded = word_at(code, *load);
  table = JumpTable{};
  table.base = instructions[*base].target;
  table.entry_bytes = static_cast<uint8_t>(1u << bits(loaded, 31, 30));
  table.is_signed = bits(loaded, 23, 23) != 0;
  if (table.entry_bytes > 4) return false;
  read_scale(sum, table);
  load_index = *load;
  return true;
}

// The number of entries, as the compare before says it.
uint32_t entries_of(Bytes code, const std::vector<Instruction>& instructions, size_t index,
                    uint32_t reg) {
  for (size_t back = 1; back <= kTableLook && back <= index; ++back) {
    const uint32_t word = word_at(code, index - back);
    const bool is_compare = (word & 0x7FC0001F) == 0x7100001F;  // subs of an immediate
    if (is_compare && rn(word) == reg) return bits(word, 21, 10) + 1;
    if (writes(word, instructions[index - back], reg)) return 0;
  }
  return 0;
}

// Values of registers that adr, adrp and add have made, along the code as it is.
class KnownAddresses {
 public:
  void follow(uint32_t word, Instruction& one) {
    if (is_add_immediate(word) && known_[rn(word)]) {
      const uint32_t value = *known_[rn(word)] + (bits(word, 21, 10) << (bits(word, 22, 22) * 12));
      one.takes_address = true;
      one.target = value;
      set(rd(word), value);
      return;
    }
    for (uint32_t reg = 0; reg < kNoRegister; ++reg) {
      if (known_[reg] && writes(word, one, reg)) known_[reg].reset();
    }
    const PcForm form = pc_form(word);
    if (form == PcForm::kAddress || form == PcForm::kPage) set(rd(word), one.target);
  }

 private:
  void set(uint32_t reg, uint32_t value) {
    if (reg != kNoRegister) known_[reg] = value;
  }

  std::array<std::optional<uint32_t>, 32> known_;
};

}  // namespace

PcForm pc_form(uint32_t word) {
  if ((word & 0x1F000000) == 0x10000000) return word >> 31 != 0 ? PcForm::kPage : PcForm::kAddress;
  if ((word & 0x3B000000) == 0x18000000) return PcForm::kLoad;
  if ((word & 0xFC000000) == 0x14000000) return PcForm::kBranch;
  if ((word & 0xFC000000) == 0x94000000) return PcForm::kCall;
  if ((word & 0xFF000000) == 0x54000000 || (word & 0x7E000000) == 0x34000000) return PcForm::kIf;
  if ((word & 0x7E000000) == 0x36000000) return PcForm::kTestBit;
  return PcForm::kNone;
}

uint32_t pc_target(uint32_t word, uint32_t address) {
  switch (pc_form(word)) {
    case PcForm::kAddress:
      return address + static_cast<uint32_t>(signed_bits(word, 23, 5) * 4 + bits(word, 30, 29));
    case PcForm::kPage:
      return (address & ~uint32_t{0xFFF}) +
             static_cast<uint32_t>((signed_bits(word, 23, 5) * 4 + bits(word, 30, 29)) * 4096);
    case PcForm::kLoad:
    case PcForm::kIf:
      return address + static_cast<uint32_t>(signed_bits(word, 23, 5) * 4);
    case PcForm::kBranch:
    case PcForm::kCall:
      return address + static_cast<uint32_t>(signed_bits(word, 25, 0) * 4);
    case PcForm::kTestBit:
      return address + static_cast<uint32_t>(signed_bits(word, 18, 5) * 4);
    case PcForm::kNone:
      break;
  }
  return 0;
}

bool decode_arm64(uint32_t word, uint32_t address, Instruction& out) {
  out = Instruction{};
  out.address = address;
  out.length = kWordBytes;
  const PcForm form = pc_form(word);
  if (form != PcForm::kNone) out.target = pc_target(word, address);
  if (is_branch_group(word)) return decode_branch_group(word, out);
  if (bits(word, 28, 25) == 0) {
    if (word >> 16 == 0) out.flow = Flow::kStop;  // udf
    return word >> 16 == 0 || word >> 31 != 0;    // SME
  }
  if (bits(word, 28, 25) == 1 || bits(word, 28, 25) == 3) return false;  // no instructions there
  if (form == PcForm::kLoad) {
    out.reads_target = true;
    const bool is_vector = bits(word, 26, 26) != 0;
    if (bits(word, 31, 30) == 3) return !is_vector;
    // Into no register: what it would fault on is not worth a form of its own.
    out.is_movable = is_vector || rd(word) != kNoRegister;
  }
  out.takes_address = form == PcForm::kAddress;
  // Signatures that contain the program counter.
  const bool signs_with_pc = (word & 0xFFFF8000) == 0xDAC18000 || (word & 0xFF80001F) == 0xF380001F;
  if (signs_with_pc) out.is_movable = false;
  return true;
}

bool decode_all_arm64(Bytes code, uint32_t begin, std::vector<Instruction>& instructions) {
  KnownAddresses addresses;
  const size_t count = code.size() / kWordBytes;
  for (size_t i = 0; i < count; ++i) {
    Instruction one;
    const uint32_t word = word_at(code, i);
    if (!decode_arm64(word, begin + static_cast<uint32_t>(i) * kWordBytes, one)) return false;
    addresses.follow(word, one);
    instructions.push_back(one);
  }
  return begin % kWordBytes == 0 && code.size() % kWordBytes == 0;
}

JumpShape arm64_jump_shape(Bytes code, const std::vector<Instruction>& instructions, size_t index) {
  const uint32_t reg = rn(word_at(code, index));
  for (size_t back = 1; back <= kShapeLook && back <= index; ++back) {
    const Instruction& before = instructions[index - back];
    const uint32_t word = word_at(code, index - back);
    if (before.flow == Flow::kBranch || before.flow == Flow::kPadding) continue;
    if (before.flow != Flow::kOn) return JumpShape::kUnknown;
    if (!writes(word, before, reg)) continue;
    if (is_add_register(word)) return JumpShape::kDistance;
    if (is_indexed_load(word)) return JumpShape::kEntry;
    if (is_load_of_word(word)) return JumpShape::kPointer;
    const bool is_move = (word & 0xFFE0FFE0) == 0xAA0003E0;
    return is_move ? JumpShape::kPointer : JumpShape::kUnknown;
  }
  // A register that was not written: an argument, if the whole function is that short.
  return index <= kShapeLook ? JumpShape::kPointer : JumpShape::kUnknown;
}

bool find_arm64_table(Bytes code, const std::vector<Instruction>& instructions, size_t index,
                      JumpTable& table) {
  size_t load = 0;
  if (!read_sum(code, instructions, index, table, load)) return false;
  const uint32_t loaded = word_at(code, load);
  const auto made = writer_of(code, instructions, load, rn(loaded), kTableLook);
  if (!made || !instructions[*made].takes_address) return false;
  table.address = instructions[*made].target;
  table.count = entries_of(code, instructions, load, rm(loaded));
  return true;
}

bool stays_by_arm64_table(Bytes code, const std::vector<Instruction>& instructions, size_t index) {
  JumpTable table;
  size_t load = 0;
  return read_sum(code, instructions, index, table, load) && table.shift != 0 &&
         table.base >= instructions.front().address && table.base < instructions.back().end();
}

}  // namespace collect::patch
