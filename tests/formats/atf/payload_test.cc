#include "formats/atf/payload.h"

#include <gtest/gtest.h>

#include <vector>

#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

std::vector<uint8_t> documented(size_t stack_bytes) {
  FunctionPayload payload{};
  payload.function_id = 0x100000002;
  for (size_t i = 0; i < 8; ++i) payload.x_regs[i] = 0x10 + i;
  payload.lr = 0xA;
  payload.fp = 0xB;
  payload.sp = 0xC;
  const std::vector<uint8_t> stack(stack_bytes, 0x5A);
  std::vector<uint8_t> out(kFunctionPayloadBytes + stack_bytes);
  EXPECT_EQ(encode_function_payload(payload, stack, out), out.size());
  return out;
}

TEST(FunctionPayload, DocumentedFieldsLieWhereTheTableSays) {
  const auto bytes = documented(4);
  ASSERT_EQ(bytes.size(), 104u);
  EXPECT_EQ(load_le<uint64_t>(bytes.data()), 0x100000002u);
  EXPECT_EQ(load_le<uint64_t>(bytes.data() + 8 + 8 * 7), 0x17u);
  EXPECT_EQ(load_le<uint64_t>(bytes.data() + 72), 0xAu);
  EXPECT_EQ(load_le<uint64_t>(bytes.data() + 80), 0xBu);
  EXPECT_EQ(load_le<uint64_t>(bytes.data() + 88), 0xCu);
  EXPECT_EQ(load_le<uint16_t>(bytes.data() + 96), 4u);
  EXPECT_EQ(bytes[100], 0x5A);
}

TEST(FunctionPayload, DocumentedIsRecognisedAtEveryStackSize) {
  for (size_t stack = 0; stack <= kMaxStackBytes; ++stack) {
    const auto bytes = documented(stack);
    const auto detail = decode_function_payload(bytes);
    ASSERT_TRUE(detail) << stack;
    EXPECT_EQ(detail->form, PayloadForm::kDocumented);
    EXPECT_EQ(detail->function_id, 0x100000002u);
    EXPECT_EQ(detail->x_regs[7], 0x17u);
    EXPECT_EQ(detail->sp, 0xCu);
    EXPECT_EQ(detail->stack.size(), stack);
  }
}

TEST(FunctionPayload, RejectsAStackBeyondTheLimit) {
  std::vector<uint8_t> out(1000);
  const std::vector<uint8_t> stack(kMaxStackBytes + 1);
  EXPECT_EQ(encode_function_payload({}, stack, out), 0u);
  std::vector<uint8_t> bytes = documented(kMaxStackBytes);
  bytes.push_back(0);
  store_le<uint16_t>(bytes.data() + 96, kMaxStackBytes + 1);
  EXPECT_FALSE(decode_function_payload(bytes));
}

TEST(FunctionPayload, AnotherLengthThanItsStackSizeSaysIsOpaque) {
  auto bytes = documented(4);
  bytes.push_back(0);
  EXPECT_FALSE(decode_function_payload(bytes));
  bytes.resize(103);
  EXPECT_FALSE(decode_function_payload(bytes));
  for (size_t length = 0; length < kFunctionPayloadBytes; ++length) {
    EXPECT_FALSE(decode_function_payload(Bytes(bytes).first(length))) << length;
  }
}

TEST(FunctionPayload, TracerBlock) {
  std::vector<uint8_t> block(kTracerPayloadBytes, 0xEE);
  store_le<uint64_t>(block.data() + 8, 0x42);
  for (size_t i = 0; i < 8; ++i) store_le<uint64_t>(block.data() + 32 + 8 * i, 100 + i);
  store_le<uint64_t>(block.data() + 96, 1);
  store_le<uint64_t>(block.data() + 104, 2);
  store_le<uint64_t>(block.data() + 112, 3);
  block[120] = 0x77;
  store_le<uint32_t>(block.data() + 248, 16);
  const auto detail = decode_function_payload(block);
  ASSERT_TRUE(detail);
  EXPECT_EQ(detail->form, PayloadForm::kTracerBlock);
  EXPECT_EQ(detail->function_id, 0x42u);
  EXPECT_EQ(detail->x_regs[0], 100u);
  EXPECT_EQ(detail->x_regs[7], 107u);
  EXPECT_EQ(detail->lr, 1u);
  EXPECT_EQ(detail->fp, 2u);
  EXPECT_EQ(detail->sp, 3u);
  ASSERT_EQ(detail->stack.size(), 16u);
  EXPECT_EQ(detail->stack[0], 0x77);
  store_le<uint32_t>(block.data() + 248, 0xFFFFFFFF);
  EXPECT_EQ(decode_function_payload(block)->stack.size(), 128u) << "never more than the block has";
}

}  // namespace
}  // namespace collect::atf
