#include "agent/crc32c.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/crc32.h"

namespace collect::agent {
namespace {

Bytes bytes_of(std::string_view text) {
  return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

std::vector<uint8_t> noise(size_t count) {
  std::vector<uint8_t> bytes(count);
  uint64_t state = 0x9E3779B97F4A7C15;
  for (uint8_t& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<uint8_t>(state);
  }
  return bytes;
}

// RFC 3720, B.4.
TEST(AgentCrc32c, HasThePublishedValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789"), 0), 0xE3069283u);
  EXPECT_EQ(crc32c(std::vector<uint8_t>(32, 0x00), 0), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::vector<uint8_t>(32, 0xFF), 0), 0x62A8AB43u);
  EXPECT_EQ(crc32c({}, 0), 0u);
}

// ISA-L is another implementation. Lengths around every block size, at every alignment.
TEST(AgentCrc32c, AgreesWithIsaL) {
  const auto bytes = noise(70000);
  for (size_t length = 0; length < 1600; ++length) {
    const Bytes part = Bytes(bytes).subspan(length % 9, length);
    ASSERT_EQ(crc32c(part, 0), collect::crc32c(part)) << length;
  }
  for (const size_t block : {size_t{768}, size_t{6144}, size_t{12288}, size_t{65536}}) {
    for (size_t length = block - 9; length <= block + 9; ++length) {
      const Bytes part = Bytes(bytes).subspan(3, length);
      ASSERT_EQ(crc32c(part, 0x12345678), collect::crc32c(part, 0x12345678)) << length;
    }
  }
}

TEST(AgentCrc32c, ContinuesFromAnEarlierSum) {
  const auto bytes = noise(20000);
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{777}, size_t{6144}, size_t{20000}}) {
    const uint32_t first = crc32c(Bytes(bytes).first(cut), 0);
    EXPECT_EQ(crc32c(Bytes(bytes).subspan(cut), first), crc32c(bytes, 0));
  }
}

TEST(AgentCrc32c, TableAgreesWithTheInstruction) {
  const auto bytes = noise(5000);
  EXPECT_EQ(~crc_detail::by_table(bytes.data(), bytes.size(), ~0u), collect::crc32c(bytes));
}

#if defined(__x86_64__)
// The system says what the processor has.
TEST(AgentCrc32c, InstructionIsUsedWhereTheProcessorHasIt) {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) continue;
  ASSERT_TRUE(line.starts_with("flags"));
  const bool is_there = (line + " ").find(" sse4_2 ") != std::string::npos;
  EXPECT_EQ(crc_detail::use_instruction(), is_there);
  EXPECT_EQ(crc_detail::use_instruction(), is_there) << "the answer is kept";
}
#endif

}  // namespace
}  // namespace collect::agent
