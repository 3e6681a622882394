#include "formats/wtf/text.h"

#include <gtest/gtest.h>

#include "formats/wtf/layout.h"

namespace collect::wtf {
namespace {

TEST(Utf8, TakesWhatTheStandardTakes) {
  for (const char* good : {"a", "é", "世", "😀", "\x7f", "\xED\x9F\xBF", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
    EXPECT_EQ(utf8_size(good), std::string_view(good).size());
  }
  // Continuation alone, overlong, surrogate, beyond U+10FFFF, cut.
  for (const char* bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE4\xB8", "\xC3", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad));
  }
}

TEST(JsonText, EscapesWhatHasToBe) {
  std::string out;
  append_json_string(out, std::string_view("a\"\\\n\t\r\x01\0é", 9 + 1));
  EXPECT_EQ(out, "\"a\\\"\\\\\\n\\t\\r\\u0001\\u0000é\"");
}

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
}

// RFC 4648, section 10.
TEST(Base64, Vectors) {
  const std::pair<const char*, const char*> kVectors[] = {{"", ""},
                                                          {"f", "Zg=="},
                                                          {"fo", "Zm8="},
                                                          {"foo", "Zm9v"},
                                                          {"foob", "Zm9vYg=="},
                                                          {"fooba", "Zm9vYmE="},
                                                          {"foobar", "Zm9vYmFy"}};
  for (const auto& [plain, coded] : kVectors) {
    std::string out;
    append_base64(out, bytes_of(plain));
    EXPECT_EQ(out, coded);
    const auto back = decode_base64(coded);
    ASSERT_TRUE(back.has_value()) << coded;
    EXPECT_EQ(text_of(*back), plain);
  }
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm 9", "Zm9v\n"}) {
    EXPECT_FALSE(decode_base64(bad).has_value()) << bad;
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

}  // namespace
}  // namespace collect::wtf
