#include "formats/core/text/base64.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace collect {
namespace {

Bytes base64_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
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
    EXPECT_EQ(base64(base64_bytes(plain)), coded);
    const auto back = decode_base64(coded);
    ASSERT_TRUE(back.has_value()) << coded;
    EXPECT_EQ(std::string(back->begin(), back->end()), plain);
  }
  for (const char* bad :
       {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "Zg==Zg==", "Z===", "====", "Zm 9", "Zm9v\n"}) {
    EXPECT_FALSE(decode_base64(bad).has_value()) << bad;
  }
}

TEST(Base64, CodesEveryLengthAndEveryDigit) {
  const char* const kOnes[] = {"",         "/w==",     "//8=",     "////",
                               "/////w==", "//////8=", "////////", "/////////w=="};
  for (size_t length = 0; length < std::size(kOnes); ++length) {
    const std::vector<uint8_t> ones(length, 0xFF);
    EXPECT_EQ(base64(ones), kOnes[length]);
    EXPECT_EQ(decode_base64(kOnes[length]), ones);
  }
  // 0, 1, … 63 in six bits each.
  const std::vector<uint8_t> rising = {0x00, 0x10, 0x83, 0x10, 0x51, 0x87, 0x20, 0x92, 0x8b, 0x30,
                                       0xd3, 0x8f, 0x41, 0x14, 0x93, 0x51, 0x55, 0x97, 0x61, 0x96,
                                       0x9b, 0x71, 0xd7, 0x9f, 0x82, 0x18, 0xa3, 0x92, 0x59, 0xa7,
                                       0xa2, 0x9a, 0xab, 0xb2, 0xdb, 0xaf, 0xc3, 0x1c, 0xb3, 0xd3,
                                       0x5d, 0xb7, 0xe3, 0x9e, 0xbb, 0xf3, 0xdf, 0xbf};
  const char* const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  EXPECT_EQ(base64(rising), alphabet);
  EXPECT_EQ(decode_base64(alphabet), rising);
}

TEST(Base64, AppendsBehindWhatIsThere) {
  std::string text = "key=";
  append_base64(text, base64_bytes("fo"));
  EXPECT_EQ(text, "key=Zm8=");
}

TEST(Base64, RefusesEveryByteOutsideTheAlphabet) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_digit = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
                          (byte >= '0' && byte <= '9') || byte == '+' || byte == '/';
    for (size_t at = 0; at < 8; ++at) {
      std::string text(8, 'A');
      text[at] = static_cast<char>(byte);
      const bool is_padding = byte == '=' && at == 7;
      EXPECT_EQ(decode_base64(text).has_value(), is_digit || is_padding) << byte << " at " << at;
    }
  }
}

TEST(Base64, RefusesPaddingInTheWrongPlace) {
  for (const char* bad :
       {"=", "==", "===", "A===", "=AAA", "A=AA", "AA=A", "==AA", "A==A", "AAA=AAAA", "AA==AAAA",
        "AAAAA===", "AAAA====", "AAAA=", "AAAA==", "AA==AA=="}) {
    EXPECT_FALSE(decode_base64(bad).has_value()) << bad;
  }
  EXPECT_EQ(decode_base64("AAAAAA=="), std::vector<uint8_t>(4));
  EXPECT_EQ(decode_base64("AAAAAAA="), std::vector<uint8_t>(5));
}

// Two texts never mean the same bytes: what the padding cuts off is zero (RFC 4648, section 3.5).
TEST(Base64, RefusesEachBitThatPaddingCutsOff) {
  for (const char* bad : {"AB==", "AC==", "AE==", "AI==", "AAB=", "AAC="}) {
    EXPECT_FALSE(decode_base64(bad).has_value()) << bad;
  }
  EXPECT_EQ(decode_base64("AQ=="), std::vector<uint8_t>{1});
  EXPECT_EQ(decode_base64("AAE="), (std::vector<uint8_t>{0, 1}));
}

}  // namespace
}  // namespace collect
