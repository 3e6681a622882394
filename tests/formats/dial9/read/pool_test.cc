// What pools hold, on the reading side and on the writing side, and that a new sub-stream begins
// with none of it.
#include "formats/dial9/read/pool.h"

#include <gtest/gtest.h>

#include "formats/dial9/interner.h"

namespace collect::dial9 {
namespace {

TEST(Pools, ClearedOnesAreAsNew) {
  const uint8_t byte[1] = {'x'};
  Pools pools;
  const size_t fresh = pools.state_bytes();
  for (int round = 0; round < 3; ++round) {
    for (uint32_t id = 0; id < 3000; ++id) {
      pools.strings.define(id, {pools.keep(byte), 1});
      pools.stacks.define(id * 1000, {pools.keep(byte), 0});
    }
    EXPECT_EQ(pools.strings.definitions(), 3000u);
    EXPECT_EQ(pools.strings.ids(), 3000u);
    EXPECT_EQ(pools.string(2999), "x");
    EXPECT_GT(pools.state_bytes(), fresh + 6000);
    pools.clear();
    EXPECT_EQ(pools.state_bytes(), fresh);
    EXPECT_EQ(pools.strings.definitions(), 0u);
    EXPECT_EQ(pools.strings.ids(), 0u);
    EXPECT_EQ(pools.string(2999), std::nullopt);
    EXPECT_EQ(pools.stack(0).has_value(), false);
    // What this sub-stream has defined says how far the array reaches.
    pools.strings.define(3000, {byte, 1});
    EXPECT_LT(pools.state_bytes(), fresh + 200);
    EXPECT_EQ(pools.string(3000), "x");
    pools.clear();
  }
}

// In blocks of 64 KiB that are filled to their last byte; what is longer has a block of its own.
TEST(Pools, CopiesFillTheirBlocks) {
  const std::vector<uint8_t> bytes(size_t{100} << 10, 'x');
  Pools pools;
  for (int i = 0; i < 64; ++i) (void)pools.keep(Bytes(bytes).first(1024));
  EXPECT_EQ(pools.state_bytes(), size_t{64} << 10);
  (void)pools.keep(Bytes(bytes).first(1));
  EXPECT_EQ(pools.state_bytes(), size_t{128} << 10);
  (void)pools.keep(bytes);
  EXPECT_EQ(pools.state_bytes(), size_t{228} << 10);
}

TEST(Interner, RestartedOneIsAsNew) {
  Interner interner(FrameTag::kStringPool, 1);
  EXPECT_EQ(interner.frame_bytes(), 0u);
  EXPECT_EQ(interner.intern("one"), 0u);
  EXPECT_EQ(interner.intern("two"), 1u);
  EXPECT_EQ(interner.intern("one"), 0u);
  EXPECT_TRUE(interner.has_pending());
  EXPECT_EQ(interner.frame_bytes(), kPoolHeadBytes + 2 * (kPoolEntryHeadBytes + 3));
  interner.restart();
  EXPECT_FALSE(interner.has_pending());
  EXPECT_EQ(interner.frame_bytes(), 0u);
  EXPECT_EQ(interner.intern("two"), 0u);
  std::vector<uint8_t> frame(interner.frame_bytes());
  interner.write_frame(frame.data());
  EXPECT_EQ(frame, (std::vector<uint8_t>{3, 1, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 't', 'w', 'o'}));
  interner.written();
  EXPECT_EQ(interner.intern("two"), 0u);
  EXPECT_FALSE(interner.has_pending());
}

// FORMAT.md "Limits": 64 MiB of contents, each with the 80 bytes that remembering it takes.
TEST(Interner, RemembersUpToItsLimitAlsoWhenRestarted) {
  constexpr size_t kMiB = size_t{1} << 20;
  Interner interner(FrameTag::kStringPool, 1);
  std::string content(kMiB - 80, 'x');
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 64; ++i) {
      store_le(reinterpret_cast<uint8_t*>(content.data()), i);
      EXPECT_EQ(interner.intern(content), i);
      interner.written();
    }
    store_le(reinterpret_cast<uint8_t*>(content.data()), 0u);
    EXPECT_EQ(interner.intern(content), 0u) << "all are remembered";
    EXPECT_EQ(interner.intern("y"), 64u);
    EXPECT_EQ(interner.intern(content), 65u) << "none is";
    interner.restart();
  }
}

// kMaxFrameBytes / 2. No one looks at a content that is too long.
TEST(Interner, NoContentHasTwoGiB) {
  Interner interner(FrameTag::kStringPool, 1);
  EXPECT_EQ(interner.intern({"x", size_t{1} << 31}), std::nullopt);
  EXPECT_FALSE(interner.has_pending());
  EXPECT_EQ(interner.intern("x"), 0u);
}

}  // namespace
}  // namespace collect::dial9
