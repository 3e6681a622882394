#include "formats/wtf/text.h"

#include <gtest/gtest.h>

#include "formats/wtf/layout.h"

namespace collect::wtf {
namespace {

TEST(JsonText, Numbers) {
  const auto text = [](double value) {
    std::string out;
    append_number(out, value);
    return out;
  };
  EXPECT_EQ(text(1367885827385.0), "1367885827385");
  EXPECT_EQ(text(4166042.317392), "4166042.317392");
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(-0.0), "-0");
  EXPECT_EQ(text(1e300), "1e+300");
  EXPECT_EQ(text(999999999999999.0), "999999999999999");
  EXPECT_EQ(text(1e15), "1e+15");
}

// RFC 3629, section 3: the first and the last of each length.
TEST(JsonText, CodePoints) {
  for (const auto& [code_point, utf8] : {std::pair(0x7Fu, "\x7F"),
                                         {0x80u, "\xC2\x80"},
                                         {0x7FFu, "\xDF\xBF"},
                                         {0x800u, "\xE0\xA0\x80"},
                                         {0xD7FFu, "\xED\x9F\xBF"},
                                         {0xE000u, "\xEE\x80\x80"},
                                         {0xFFFFu, "\xEF\xBF\xBF"},
                                         {0x10000u, "\xF0\x90\x80\x80"},
                                         {0x10FFFFu, "\xF4\x8F\xBF\xBF"},
                                         {0xD800u, "\xEF\xBF\xBD"},
                                         {0xDFFFu, "\xEF\xBF\xBD"},
                                         {0x110000u, "\xEF\xBF\xBD"}}) {
    std::string out;
    append_code_point(code_point, out);
    EXPECT_EQ(out, utf8) << code_point;
  }
}

TEST(Sniffing, KnowsFilesByContent) {
  const auto kind = [](std::string_view text) { return file_kind(bytes_of(text)); };
  const std::string_view binary("\xEF\xBE\xAD\xDE\0\0\0\0\x0A\0\0\0", 12);
  const std::string_view legacy("\xDE\xAD\xBE\xEF\0\0\0\0\0\0\0\x03", 12);
  EXPECT_EQ(kind(binary), FileKind::kBinary);
  EXPECT_EQ(kind(legacy), FileKind::kLegacy);
  EXPECT_EQ(kind(binary.substr(0, 11)), FileKind::kUnknown);
  EXPECT_EQ(kind(std::string_view("\xEF\xBE\xAD\xDE\0\0\0\0\x0B\0\0\0", 12)), FileKind::kUnknown);
  EXPECT_EQ(kind(" \n{\"wtfVersion\": 1}"), FileKind::kJson);
  EXPECT_EQ(kind("{\"wtf_version\":1}"), FileKind::kJson);
  EXPECT_EQ(kind("{\"format_version\": \"2.1\", \"threads\": []}"), FileKind::kUnknown);
  EXPECT_EQ(kind("[\"wtfVersion\"]"), FileKind::kUnknown);
  EXPECT_FALSE(looks_like_wtf({}));
}

TEST(Sniffing, LooksAtTheFirstBytesOnly) {
  const std::string key = "\"wtfVersion\"";
  std::string text = "{" + std::string(kSniffBytes - 1 - key.size(), ' ') + key;
  EXPECT_EQ(file_kind(bytes_of(text)), FileKind::kJson);
  text.insert(1, 1, ' ');
  EXPECT_EQ(file_kind(bytes_of(text)), FileKind::kUnknown);
}

}  // namespace
}  // namespace collect::wtf
