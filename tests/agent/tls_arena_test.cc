#include "agent/transport/tls_arena.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace collect::agent {
namespace {

TEST(TlsArenaTest, BlocksAreAlignedApartAndUsedAgain) {
  auto* const first = static_cast<uint8_t*>(tls_allocate(100));
  auto* const second = static_cast<uint8_t*>(tls_allocate(100));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 16, 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(second) % 16, 0u);
  std::memset(first, 1, 100);
  std::memset(second, 2, 100);
  EXPECT_EQ(first[99], 1);
  tls_free(first);
  EXPECT_EQ(tls_allocate(100), first);
  tls_free(nullptr);
}

TEST(TlsArenaTest, GrowingKeepsTheContent) {
  auto* block = static_cast<uint8_t*>(tls_reallocate(nullptr, 10));
  for (uint8_t i = 0; i < 10; ++i) block[i] = i;
  block = static_cast<uint8_t*>(tls_reallocate(block, 100'000));
  ASSERT_NE(block, nullptr);
  for (uint8_t i = 0; i < 10; ++i) EXPECT_EQ(block[i], i);
  EXPECT_EQ(tls_reallocate(block, 50), block);  // smaller: it stays
  tls_free(block);
}

TEST(TlsArenaTest, RefusesBeyondItsSizeAndReusesFreedBlocks) {
  EXPECT_EQ(tls_allocate(kMaxTlsBlock), nullptr);  // with its header it is longer
  EXPECT_EQ(tls_allocate(SIZE_MAX), nullptr);
  std::vector<void*> blocks;
  while (void* block = tls_allocate(60'000)) blocks.push_back(block);
  EXPECT_GE(blocks.size(), 100u);
  EXPECT_LE(tls_arena_used(), kTlsArenaBytes);
  tls_free(blocks.back());
  EXPECT_EQ(tls_allocate(60'000), blocks.back());
  for (void* block : blocks) tls_free(block);
}

}  // namespace
}  // namespace collect::agent
