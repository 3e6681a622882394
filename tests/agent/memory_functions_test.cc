// The library's own memcpy and the like against the C library's, at every alignment and length
// about their blocks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
void* own_memcpy(void* to, const void* from, size_t count);
void* own_memmove(void* to, const void* from, size_t count);
void* own_memset(void* to, int value, size_t count);
int own_memcmp(const void* first, const void* second, size_t count);
void* own_memchr(const void* in, int value, size_t count);
size_t own_strlen(const char* text);
size_t own_strnlen(const char* text, size_t most);
int own_strcmp(const char* first, const char* second);
int own_strncmp(const char* first, const char* second, size_t most);
char* own_strchr(const char* text, int value);
char* own_strrchr(const char* text, int value);
}

namespace {

constexpr size_t kBytes = 160;
constexpr size_t kMost = 70;

std::vector<unsigned char> numbered() {
  std::vector<unsigned char> bytes(kBytes);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<unsigned char>(3 * i + 1);
  return bytes;
}

int sign(int value) {
  return (value > 0) - (value < 0);
}

TEST(MemoryFunctionsTest, CopyWhatTheyShallAndNothingBeside) {
  for (size_t count = 0; count <= kMost; ++count) {
    for (size_t from = 0; from < 17; ++from) {
      for (size_t to = 0; to < 80; to += to < 34 ? 1 : 9) {
        std::vector<unsigned char> expected = numbered();
        std::vector<unsigned char> moved = numbered();
        std::memmove(&expected[to], &expected[from], count);
        EXPECT_EQ(own_memmove(&moved[to], &moved[from], count), &moved[to]);
        ASSERT_EQ(moved, expected) << count << " from " << from << " to " << to;
        const std::vector<unsigned char> source = numbered();
        std::vector<unsigned char> copied = numbered();
        std::vector<unsigned char> wanted = numbered();
        std::memcpy(&wanted[to], &source[from], count);
        EXPECT_EQ(own_memcpy(&copied[to], &source[from], count), &copied[to]);
        ASSERT_EQ(copied, wanted);
      }
      std::vector<unsigned char> filled = numbered();
      std::vector<unsigned char> expected = numbered();
      std::memset(&expected[from], 0x1A5, count);
      EXPECT_EQ(own_memset(&filled[from], 0x1A5, count), &filled[from]);
      ASSERT_EQ(filled, expected);
    }
  }
}

TEST(MemoryFunctionsTest, CompareAsUnsignedBytes) {
  for (size_t count = 0; count <= kMost; ++count) {
    const std::vector<unsigned char> left = numbered();
    EXPECT_EQ(own_memcmp(left.data(), numbered().data(), count), 0);
    for (size_t at = 0; at < kMost; ++at) {
      for (const int other : {0, 255}) {
        std::vector<unsigned char> right = numbered();
        right[at] = static_cast<unsigned char>(other);
        EXPECT_EQ(sign(own_memcmp(left.data(), right.data(), count)),
                  sign(std::memcmp(left.data(), right.data(), count)))
            << count << " " << at;
      }
    }
  }
  const std::vector<unsigned char> bytes = numbered();
  for (int value = 0; value < 256; ++value) {
    for (const size_t count : {size_t{0}, size_t{5}, kBytes}) {
      EXPECT_EQ(own_memchr(bytes.data(), value + 256, count),
                std::memchr(bytes.data(), value, count));
    }
  }
}

TEST(MemoryFunctionsTest, ReadTextsToTheirEnd) {
  const std::string texts[] = {"",    "a",      "ab",     "abc",
                               "abd", "ab\xff", "abcabc", std::string(40, 'x')};
  for (const std::string& left : texts) {
    const char* const first = left.c_str();
    EXPECT_EQ(own_strlen(first), std::strlen(first));
    for (size_t most = 0; most < 8; ++most)
      EXPECT_EQ(own_strnlen(first, most), strnlen(first, most));
    for (const int value : {0, int{'a'}, int{'b'}, int{'z'}, 0xFF}) {
      EXPECT_EQ(own_strchr(first, value), std::strchr(first, value));
      EXPECT_EQ(own_strrchr(first, value), std::strrchr(first, value));
    }
    for (const std::string& right : texts) {
      const char* const second = right.c_str();
      EXPECT_EQ(sign(own_strcmp(first, second)), sign(std::strcmp(first, second)));
      for (size_t most = 0; most < 8; ++most) {
        EXPECT_EQ(sign(own_strncmp(first, second, most)), sign(std::strncmp(first, second, most)));
      }
    }
  }
}

}  // namespace
