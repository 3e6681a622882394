#include "daemon/ingest/buffer_pool.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <vector>

#include "daemon/ingest/limits.h"

namespace collect::ingest {
namespace {

// Whether the system still has the page mapped for this process.
bool is_mapped(uint8_t* page) {
  unsigned char resident = 0;
  return mincore(page, 1, &resident) == 0;
}

TEST(BufferPool, GivesOutNoMoreThanItsBoundAndCallsWhoWaits) {
  const auto pool = std::make_shared<BufferPool>(2);
  BufferRef first = pool->acquire();
  const BufferRef second = pool->acquire();
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(pool->acquire());
  int calls = 0;
  pool->wait([&calls] { ++calls; });
  EXPECT_EQ(calls, 0);
  first.reset();
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(pool->acquire());
}

// From then on idle readers give theirs back.
TEST(BufferPool, IsScarceWhenMoreThanHalfIsInUse) {
  const auto pool = std::make_shared<BufferPool>(4);
  std::vector<BufferRef> used;
  for (const bool scarce : {false, false, true, true}) {
    used.push_back(pool->acquire());
    EXPECT_EQ(pool->in_use(), used.size());
    EXPECT_EQ(pool->scarce(), scarce) << used.size();
  }
  used.resize(2);
  EXPECT_FALSE(pool->scarce());
}

TEST(BufferPool, TheBufferUsedLastIsUsedNext) {
  const auto pool = std::make_shared<BufferPool>(8);
  BufferRef buffer = pool->acquire();
  BufferRef other = pool->acquire();
  uint8_t* const bytes = buffer->data();
  other.reset();
  buffer.reset();
  EXPECT_EQ(pool->acquire()->data(), bytes);
}

TEST(BufferPool, TrimKeepsWhatWasNeededSinceTheLastTrim) {
  const auto pool = std::make_shared<BufferPool>(8);
  std::vector<BufferRef> burst;
  for (int i = 0; i < 4; ++i) burst.push_back(pool->acquire());
  uint8_t* const last = burst.back()->data();
  std::vector<uint8_t*> all;
  for (const BufferRef& buffer : burst) all.push_back(buffer->data());
  for (BufferRef& buffer : burst) buffer.reset();  // `last` comes back last

  pool->trim();  // four were in use until now
  for (uint8_t* bytes : all) EXPECT_TRUE(is_mapped(bytes));
  pool->acquire().reset();  // one is needed
  pool->trim();
  EXPECT_TRUE(is_mapped(last));
  int mapped = 0;
  for (uint8_t* bytes : all) mapped += is_mapped(bytes) ? 1 : 0;
  EXPECT_EQ(mapped, 1);
  EXPECT_EQ(pool->acquire()->data(), last);
}

TEST(BufferPool, WhereOneIsFreeNobodyWaits) {
  const auto pool = std::make_shared<BufferPool>(1);
  int calls = 0;
  pool->wait([&calls] { ++calls; });
  EXPECT_EQ(calls, 1);
  pool->acquire().reset();
  EXPECT_EQ(calls, 1) << "once";
}

TEST(BufferPool, ABufferKnowsWhetherSomebodyReadsIt) {
  const auto pool = std::make_shared<BufferPool>(1);
  BufferRef buffer = pool->acquire();
  EXPECT_TRUE(buffer->unshared());
  BufferRef one = BufferPool::Buffer::lend(buffer);
  BufferRef other = BufferPool::Buffer::lend(buffer);
  EXPECT_EQ(one->data(), buffer->data());
  EXPECT_FALSE(buffer->unshared());
  one.reset();
  EXPECT_FALSE(buffer->unshared());
  other.reset();
  EXPECT_TRUE(buffer->unshared());
  other = BufferPool::Buffer::lend(buffer);
  buffer.reset();
  EXPECT_EQ(pool->in_use(), 1u) << "as long as anybody looks at it";
  other.reset();
  EXPECT_EQ(pool->in_use(), 0u);
}

// Buffers may lie side by side: none takes a page of its neighbour with it.
TEST(BufferPool, WhatIsGivenBackIsTheBufferAlone) {
  for (const bool is_upwards : {true, false}) {
    const auto pool = std::make_shared<BufferPool>(8);
    std::vector<BufferRef> buffers;
    for (int i = 0; i < 8; ++i) buffers.push_back(pool->acquire());
    std::vector<BufferRef> kept;
    for (size_t i = 0; i < buffers.size(); ++i) {
      if ((i % 2 == 0) == is_upwards) kept.push_back(std::move(buffers[i]));
    }
    buffers.clear();
    pool->trim();
    pool->trim();
    for (const BufferRef& buffer : kept) {
      EXPECT_TRUE(is_mapped(buffer->data()));
      EXPECT_TRUE(is_mapped(buffer->data() + kReadBufferBytes - 4096));
    }
  }
}

}  // namespace
}  // namespace collect::ingest
