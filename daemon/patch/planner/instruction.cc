#include "daemon/patch/planner/instruction.h"

#include <Zydis/Zydis.h>

#include "daemon/patch/planner/arm64_instruction.h"

namespace collect::patch {
namespace {

const ZydisDecoder& decoder() {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder made;
    (void)ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  return decoder;
}

bool is_short_branch(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_JCXZ:
    case ZYDIS_MNEMONIC_JECXZ:
    case ZYDIS_MNEMONIC_JRCXZ:
    case ZYDIS_MNEMONIC_LOOP:
    case ZYDIS_MNEMONIC_LOOPE:
    case ZYDIS_MNEMONIC_LOOPNE:
      return true;
    default:
      return false;
  }
}

Flow flow_of(const ZydisDecodedInstruction& one) {
  const bool is_direct = one.raw.imm[0].is_relative != 0;
  switch (one.meta.category) {
    case ZYDIS_CATEGORY_COND_BR:
      return is_short_branch(one.mnemonic) ? Flow::kShortBranch : Flow::kBranch;
    case ZYDIS_CATEGORY_UNCOND_BR:
      return is_direct ? Flow::kJump : Flow::kIndirectJump;
    case ZYDIS_CATEGORY_CALL:
      return is_direct ? Flow::kCall : Flow::kIndirectCall;
    case ZYDIS_CATEGORY_RET:
      return Flow::kReturn;
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
      return Flow::kPadding;
    default:
      break;
  }
  switch (one.mnemonic) {
    case ZYDIS_MNEMONIC_INT3:
      return Flow::kTrap;
    case ZYDIS_MNEMONIC_UD0:
    case ZYDIS_MNEMONIC_UD1:
    case ZYDIS_MNEMONIC_UD2:
    case ZYDIS_MNEMONIC_HLT:
      return Flow::kStop;
    default:
      return Flow::kOn;
  }
}

bool is_far_or_odd(const ZydisDecodedInstruction& one) {
  switch (one.mnemonic) {
    case ZYDIS_MNEMONIC_XBEGIN:
    case ZYDIS_MNEMONIC_IRET:
    case ZYDIS_MNEMONIC_IRETD:
    case ZYDIS_MNEMONIC_IRETQ:
    case ZYDIS_MNEMONIC_SYSRET:
    case ZYDIS_MNEMONIC_SYSEXIT:
    case ZYDIS_MNEMONIC_UIRET:
      return true;
    default:
      return one.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR;
  }
}

bool is_relative_to_rip(const ZydisDecodedInstruction& one) {
  return (one.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && one.raw.modrm.mod == 0 &&
         one.raw.modrm.rm == 5 && one.raw.disp.size == 32;
}

void note_values(const ZydisDecodedInstruction& one, Instruction& out) {
  const auto imm = one.raw.imm[0].value.u;
  if (one.raw.imm[0].size >= 32 && imm <= INT32_MAX) out.value = static_cast<uint32_t>(imm);
  if (one.raw.disp.size == 32 && out.value == 0 && one.raw.disp.value > 0) {
    out.value = static_cast<uint32_t>(one.raw.disp.value);
  }
}

// The operands of an instruction that was decoded already.
struct Operands {
  ZydisDecodedInstruction one;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  Operands(Bytes code, uint32_t begin, const Instruction& instruction) {
    const size_t at = instruction.address - begin;
    (void)ZydisDecoderDecodeFull(&decoder(), code.data() + at, instruction.length, &one, operands);
  }
  bool writes(ZydisRegister reg) const {
    for (uint8_t i = 0; i < one.operand_count; ++i) {
      const ZydisDecodedOperand& operand = operands[i];
      if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
          (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0 &&
          ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value) == reg) {
        return true;
      }
    }
    return false;
  }
};

// Where the register of an indirect jump comes from.
JumpShape shape_of_writer(const Operands& writer) {
  if (writer.one.mnemonic == ZYDIS_MNEMONIC_ADD || writer.one.mnemonic == ZYDIS_MNEMONIC_MOVSXD) {
    return JumpShape::kDistance;
  }
  if (writer.one.mnemonic == ZYDIS_MNEMONIC_LEA) return JumpShape::kUnknown;
  if (writer.one.mnemonic != ZYDIS_MNEMONIC_MOV) return JumpShape::kUnknown;
  const ZydisDecodedOperand& from = writer.operands[1];
  if (from.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    return from.mem.index == ZYDIS_REGISTER_NONE ? JumpShape::kPointer : JumpShape::kEntry;
  }
  return from.type == ZYDIS_OPERAND_TYPE_REGISTER ? JumpShape::kPointer : JumpShape::kUnknown;
}

}  // namespace

bool decode(Bytes code, uint32_t address, Instruction& out) {
  ZydisDecodedInstruction one;
  if (!ZYAN_SUCCESS(
          ZydisDecoderDecodeInstruction(&decoder(), nullptr, code.data(), code.size(), &one))) {
    return false;
  }
  out = Instruction{};
  out.address = address;
  out.length = one.length;
  out.flow = flow_of(one);
  out.is_landing = one.mnemonic == ZYDIS_MNEMONIC_ENDBR64;
  out.is_movable = !is_far_or_odd(one) && out.flow != Flow::kShortBranch;
  if (out.is_landing) out.flow = Flow::kOn;
  if (one.raw.imm[0].is_relative != 0) {
    out.target = address + one.length + static_cast<uint32_t>(one.raw.imm[0].value.s);
    out.condition = one.opcode & 0x0F;
    // With an operand size prefix, processors disagree about what such a jump is.
    if ((one.attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE) != 0) out.is_movable = false;
  } else if (is_relative_to_rip(one)) {
    out.distance_at = one.raw.disp.offset;
    out.target = address + one.length + static_cast<uint32_t>(one.raw.disp.value);
    out.takes_address = one.mnemonic == ZYDIS_MNEMONIC_LEA;
    if (one.address_width != 64) out.is_movable = false;
  } else {
    note_values(one, out);
  }
  return true;
}

bool decode_all(Processor processor, Bytes code, uint32_t begin,
                std::vector<Instruction>& instructions) {
  if (processor == Processor::kArm64) return decode_all_arm64(code, begin, instructions);
  for (size_t at = 0; at < code.size();) {
    Instruction one;
    if (!decode(code.subspan(at), begin + static_cast<uint32_t>(at), one)) return false;
    instructions.push_back(one);
    at += one.length;
  }
  return true;
}

JumpShape jump_shape(Processor processor, Bytes code, uint32_t begin,
                     const std::vector<Instruction>& instructions, size_t index) {
  if (processor == Processor::kArm64) return arm64_jump_shape(code, instructions, index);
  const Operands jump(code, begin, instructions[index]);
  if ((jump.one.attributes & ZYDIS_ATTRIB_HAS_NOTRACK) != 0) return JumpShape::kDistance;
  const ZydisDecodedOperand& where = jump.operands[0];
  if (where.type == ZYDIS_OPERAND_TYPE_MEMORY) {
    if (where.mem.base == ZYDIS_REGISTER_RIP) return JumpShape::kSlot;
    return where.mem.index == ZYDIS_REGISTER_NONE ? JumpShape::kPointer : JumpShape::kEntry;
  }
  if (where.type != ZYDIS_OPERAND_TYPE_REGISTER) return JumpShape::kUnknown;
  for (size_t back = 1; back <= kShapeLook && back <= index; ++back) {
    const Instruction& before = instructions[index - back];
    if (before.flow == Flow::kBranch || before.flow == Flow::kPadding) continue;
    if (before.flow != Flow::kOn) return JumpShape::kUnknown;
    const Operands writer(code, begin, before);
    if (writer.writes(where.reg.value)) return shape_of_writer(writer);
  }
  // A register that was not written: an argument, if the whole function is that short.
  return index <= kShapeLook ? JumpShape::kPointer : JumpShape::kUnknown;
}

}  // namespace collect::patch
