#include "storage/function_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "formats/core/bytes.h"
#include "tests/storage/fake_stream.h"

namespace collect::storage::test {
namespace {

// The inverse of the multiplication that the set's hash was once: ids for one slot of 2^20.
std::vector<uint64_t> colliding_ids(size_t count) {
  uint64_t inverse = 1;
  for (int round = 0; round < 6; ++round) inverse *= 2 - 0x9E3779B97F4A7C15ull * inverse;
  std::vector<uint64_t> ids;
  for (uint64_t low = 1; ids.size() < count; ++low) {
    ids.push_back(((uint64_t{7} << 32) | low) * inverse);
  }
  return ids;
}

std::chrono::nanoseconds time_of(const std::vector<uint64_t>& ids) {
  FunctionSet set;
  const auto start = std::chrono::steady_clock::now();
  for (const uint64_t id : ids) set.add(id);
  EXPECT_EQ(set.size(), ids.size());
  return std::chrono::steady_clock::now() - start;
}

// Seen: four megabytes of such ids kept a writer thread busy for 13 s. A ratio of two runs of the
// same process; chosen ids took some thousand times as long.
TEST(FunctionSet, ChosenIdsCostWhatAnyIdsCost) {
  constexpr size_t kIds = 60'000;
  std::mt19937_64 random(1);
  std::vector<uint64_t> any(kIds);
  for (uint64_t& id : any) id = random() | 1;
  const auto usual = time_of(any);
  EXPECT_LT(time_of(colliding_ids(kIds)), 50 * usual);
}

TEST(FunctionSet, FindsEveryIdOfBothVersionsOnce) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    FakeStream stream(version, 1, 100);
    stream.add_many(100);
    std::vector<uint8_t> bytes = stream.index_bytes();
    std::set<uint64_t> expected;
    for (size_t i = 0; i < 100; ++i) {
      const uint64_t id = i % 9 == 0 ? 0 : i % 9 == 1 ? 1 : (i % 10) << 32 | (i * i);
      store_le(bytes.data() + i * 32 + 8, id);
      expected.insert(id);
    }
    FunctionSet functions;
    functions.add_events(bytes);
    functions.add_events(bytes);
    EXPECT_EQ(functions.sorted(), std::vector<uint64_t>(expected.begin(), expected.end()));
    EXPECT_EQ(functions.size(), expected.size());
  }
}

TEST(FunctionSet, IsBounded) {
  FunctionSet functions;
  for (uint64_t i = 1; i <= kMaxSeenFunctions; ++i) functions.add(i * 7);
  EXPECT_FALSE(functions.overflowed());
  functions.add(7);  // known
  EXPECT_FALSE(functions.overflowed());
  functions.add(1);
  EXPECT_TRUE(functions.overflowed());
  EXPECT_EQ(functions.size(), kMaxSeenFunctions);
  EXPECT_EQ(functions.sorted().size(), kMaxSeenFunctions);
}

TEST(FunctionSet, IdZeroIsAnId) {
  std::vector<uint8_t> events(3 * 32);
  const uint64_t one = 1;
  std::memcpy(events.data() + 32 + 8, &one, sizeof one);
  FunctionSet set;
  set.add_events(events);
  EXPECT_EQ(set.sorted(), (std::vector<uint64_t>{0, 1}));
}

}  // namespace
}  // namespace collect::storage::test
