#include "formats/atf/payload.h"

#include <algorithm>

namespace collect::atf {
namespace {

// Offsets within the 516-byte block; FORMAT.md "Tracer block".
constexpr size_t kBlockFunctionId = 8;
constexpr size_t kBlockRegisters = 32;
constexpr size_t kBlockLr = 96;
constexpr size_t kBlockFp = 104;
constexpr size_t kBlockSp = 112;
constexpr size_t kBlockStack = 120;
constexpr size_t kBlockStackBytes = 128;
constexpr size_t kBlockStackSize = 248;

FunctionDetail decode_block(Bytes block) {
  FunctionDetail detail;
  detail.form = PayloadForm::kTracerBlock;
  detail.function_id = load_le<uint64_t>(block.data() + kBlockFunctionId);
  for (size_t i = 0; i < 8; ++i) {
    detail.x_regs[i] = load_le<uint64_t>(block.data() + kBlockRegisters + 8 * i);
  }
  detail.lr = load_le<uint64_t>(block.data() + kBlockLr);
  detail.fp = load_le<uint64_t>(block.data() + kBlockFp);
  detail.sp = load_le<uint64_t>(block.data() + kBlockSp);
  const uint32_t size = load_le<uint32_t>(block.data() + kBlockStackSize);
  detail.stack = block.subspan(kBlockStack, std::min<size_t>(size, kBlockStackBytes));
  return detail;
}

}  // namespace

std::optional<FunctionDetail> decode_function_payload(Bytes payload) {
  // 516 cannot be a documented payload: its stack would have 416 bytes.
  if (payload.size() == kTracerPayloadBytes) return decode_block(payload);
  if (payload.size() < kFunctionPayloadBytes) return std::nullopt;
  ByteReader in(payload);
  FunctionDetail detail;
  detail.form = PayloadForm::kDocumented;
  detail.function_id = in.u64();
  for (uint64_t& reg : detail.x_regs) reg = in.u64();
  detail.lr = in.u64();
  detail.fp = in.u64();
  detail.sp = in.u64();
  const uint16_t stack_size = in.u16();
  in.skip(2);
  if (stack_size > kMaxStackBytes || in.remaining() != stack_size) return std::nullopt;
  detail.stack = in.bytes(stack_size);
  return detail;
}

}  // namespace collect::atf
