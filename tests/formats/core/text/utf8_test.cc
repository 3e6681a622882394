#include "formats/core/text/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace collect {
namespace {

// Bit by bit from RFC 3629, apart from the code under test.
std::string encoded(uint32_t code) {
  std::string out;
  const auto put = [&out](uint32_t byte) { out += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
  return out;
}

TEST(Utf8, ReadsEveryCodePoint) {
  for (uint32_t code = 0; code <= 0x10FFFF; ++code) {
    const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    const std::string text = encoded(code) + "x";
    const Utf8Step step = utf8_step(text);
    ASSERT_EQ(step.is_valid, !is_surrogate) << std::hex << code;
    if (is_surrogate) continue;
    ASSERT_EQ(step.bytes, text.size() - 1) << std::hex << code;
    ASSERT_EQ(step.code_point, code);
  }
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  struct Case {
    const char* text;
    size_t bytes;
  };
  const Case cases[] = {{"\x80", 1},
                        {"\xBF", 1},
                        {"\xC0\x80", 1},
                        {"\xC1\xBF", 1},
                        {"\xC3", 1},
                        {"\xC3(", 1},
                        {"\xE0\x80\x80", 1},
                        {"\xE0\x9F\xBF", 1},
                        {"\xED\xA0\x80", 1},
                        {"\xED\xBF\xBF", 1},
                        {"\xE2\x82", 2},
                        {"\xE2\x82(", 2},
                        {"\xE2(", 1},
                        {"\xF0\x80\x80\x80", 1},
                        {"\xF0\x8F\xBF\xBF", 1},
                        {"\xF0\x9F\x98", 3},
                        {"\xF0\x9F(", 2},
                        {"\xF4\x90\x80\x80", 1},
                        {"\xF5\x80\x80\x80", 1},
                        {"\xFE", 1},
                        {"\xFF", 1}};
  for (const Case& each : cases) {
    const Utf8Step step = utf8_step(each.text);
    EXPECT_FALSE(step.is_valid) << each.text;
    EXPECT_EQ(step.bytes, each.bytes) << each.text;
    for (size_t ahead = 0; ahead <= 17; ++ahead) {
      EXPECT_FALSE(is_utf8(std::string(ahead, 'a') + each.text + std::string(9, 'b')));
    }
  }
}

TEST(Utf8, BytesAreJudgedAsText) {
  const std::string good = "12345678\xC3\xA4";
  const auto bytes = Bytes(reinterpret_cast<const uint8_t*>(good.data()), good.size());
  EXPECT_TRUE(is_utf8(bytes));
  EXPECT_TRUE(is_utf8(Bytes()));
  EXPECT_FALSE(is_utf8(bytes.first(good.size() - 1)));
}

TEST(Utf8, RefusesEveryPrefixOfACharacter) {
  for (const uint32_t code : {0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    const std::string whole = encoded(code);
    EXPECT_TRUE(is_utf8("12345678" + whole));
    for (size_t size = 1; size < whole.size(); ++size) {
      const std::string part = whole.substr(0, size);
      const Utf8Step step = utf8_step(part);
      EXPECT_FALSE(step.is_valid);
      EXPECT_EQ(step.bytes, size);
      EXPECT_FALSE(is_utf8("12345678" + part));
    }
  }
}

}  // namespace
}  // namespace collect
