#include "formats/core/keyed_hash.h"

#include <gtest/gtest.h>

#include <bitset>

namespace collect {
namespace {

// Python, with numbers of any size: the low half of each product xor its high half.
TEST(KeyedHash, IsTwoFoldedProducts) {
  constexpr HashKey kKey{0x0123456789ABCDEE, 0xFEDCBA9876543211};
  EXPECT_EQ(keyed_hash(kKey, 0x0u), 0x3E04BFABE0CF5B1Au);
  EXPECT_EQ(keyed_hash(kKey, 0x1u), 0x0B4BD5B315A2C546u);
  EXPECT_EQ(keyed_hash(kKey, 0xFFFFFFFFFFFFFFFFu), 0xE15252634A6F7E27u);
}

// What no one can guess is one key for the whole process, whose factor is odd: no two values meet
// in the low half of the first product.
TEST(KeyedHash, ProcessHasOneKey) {
  const HashKey key = process_hash_key();
  EXPECT_EQ(key.multiply % 2, 1u);
  EXPECT_EQ(process_hash_key().add, key.add);
  EXPECT_EQ(process_hash_key().multiply, key.multiply);
  EXPECT_EQ(KeyedHash()(42), keyed_hash(key, 42));
  // 128 random bits: a quarter of them set, or fewer, would be no chance.
  EXPECT_GT(std::bitset<64>(key.add).count() + std::bitset<64>(key.multiply).count(), 32u);
}

}  // namespace
}  // namespace collect
