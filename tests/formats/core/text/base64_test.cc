#include "formats/core/text/base64.h"

#include <gtest/gtest.h>

#include <utility>

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

}  // namespace
}  // namespace collect
