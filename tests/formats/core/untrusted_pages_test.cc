#include "formats/core/untrusted_pages.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace collect {
namespace {

// Turns pages whose tokens are `next(n)` of the page n, from 0, until the list ends or is an error;
// how many came.
template <class Next>
uint64_t turned(UntrustedPages& pages, Status& status, uint64_t most, uint64_t entries, Next next) {
  for (uint64_t n = 0; n < most; ++n) {
    status = pages.turn(entries, next(n));
    if (!status.ok() || !pages.goes_on()) return n + 1;
  }
  return most;
}

TEST(UntrustedPages, EndsWhereThePeerSaysSo) {
  UntrustedPages pages("the list", 10);
  EXPECT_EQ(pages.token(), "");
  ASSERT_TRUE(pages.turn(4, "b").ok());
  EXPECT_TRUE(pages.goes_on());
  EXPECT_EQ(pages.token(), "b");
  ASSERT_TRUE(pages.turn(6, "").ok());
  EXPECT_FALSE(pages.goes_on());
}

TEST(UntrustedPages, EntriesAndBytesAreBounded) {
  UntrustedPages pages("the list", 10, 100);
  ASSERT_TRUE(pages.turn(5, "b", 50).ok());
  EXPECT_EQ(UntrustedPages(pages).turn(6, "c", 1).code(), Code::kLimit);
  EXPECT_EQ(UntrustedPages(pages).turn(1, "c", 51).code(), Code::kLimit);
  EXPECT_EQ(UntrustedPages(pages).turn(UINT64_MAX, "c").code(), Code::kLimit);
  const Status limit = UntrustedPages(pages).turn(0, "c", UINT64_MAX);
  EXPECT_EQ(limit.code(), Code::kLimit);
  EXPECT_EQ(limit.error().message, "the list is longer than it may be: ask for less of it");
  EXPECT_TRUE(pages.turn(5, "c", 50).ok());
}

// A circle of any length, after any pages, is noticed within three times both.
TEST(UntrustedPages, NoticesEveryCircle) {
  for (const uint64_t before : {0u, 1u, 2u, 3u, 7u, 100u}) {
    for (const uint64_t length : {1u, 2u, 3u, 5u, 64u, 100u}) {
      UntrustedPages pages("the list", UINT64_MAX);
      Status status;
      const uint64_t count = turned(pages, status, 10'000, 1, [&](uint64_t n) {
        return std::to_string(n < before ? n : before + (n - before) % length);
      });
      EXPECT_EQ(status.code(), Code::kDamaged) << before << " " << length;
      EXPECT_GT(count, before + length);
      EXPECT_LE(count, 3 * (before + length) + 3) << before << " " << length;
    }
  }
}

TEST(UntrustedPages, LongListThatEndsIsNoCircle) {
  UntrustedPages pages("the list", UINT64_MAX);
  Status status;
  const uint64_t count = turned(pages, status, 200'000, 1, [](uint64_t n) {
    return n < 100'000 ? std::to_string(n) : std::string();
  });
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(count, 100'001u);
}

TEST(UntrustedPages, EmptyPagesAndLongTokensAreBounded) {
  UntrustedPages pages("the list", UINT64_MAX);
  Status status;
  EXPECT_EQ(turned(pages, status, 10'000, 0, [](uint64_t n) { return std::to_string(n); }),
            kMaxEmptyPages + 1);
  EXPECT_EQ(status.code(), Code::kDamaged);
  UntrustedPages others("the list", 10);
  EXPECT_TRUE(UntrustedPages(others).turn(1, std::string(kMaxPageTokenBytes, 'x')).ok());
  EXPECT_EQ(others.turn(1, std::string(kMaxPageTokenBytes + 1, 'x')).code(), Code::kDamaged);
}

}  // namespace
}  // namespace collect
