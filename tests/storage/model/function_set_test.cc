#include "storage/model/function_set.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "formats/core/bytes.h"
#include "storage/model/stored_functions.h"
#include "tests/storage/session_fixture.h"

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
  for (uint64_t i = 1; i <= kMaxFunctionIds; ++i) functions.add(i * 7);
  EXPECT_FALSE(functions.overflowed());
  functions.add(7);  // known
  EXPECT_FALSE(functions.overflowed());
  functions.add(1);
  EXPECT_TRUE(functions.overflowed());
  EXPECT_EQ(functions.size(), kMaxFunctionIds);
  EXPECT_EQ(functions.sorted().size(), kMaxFunctionIds);
}

TEST(FunctionSet, IdZeroIsAnId) {
  std::vector<uint8_t> events(3 * 32);
  const uint64_t one = 1;
  std::memcpy(events.data() + 32 + 8, &one, sizeof one);
  FunctionSet set;
  set.add_events(events);
  EXPECT_EQ(set.sorted(), (std::vector<uint64_t>{0, 1}));
}

class StoredFunctionsTest : public SessionTest {
 protected:
  // More than is read at once, and not a multiple of it; every event is of a function of its own.
  static constexpr uint64_t kEvents = 2 * 8192 + 100;

  // A sealed session of two threads; the functions of the second follow those of the first.
  std::string record(atf::Version version = atf::Version::kV2) {
    auto session = make(version);
    for (uint32_t id = 1; id <= 2; ++id) {
      FakeStream stream(version, id, 100 + id);
      stream.add_many(kEvents);
      for (uint64_t i = 0; i < kEvents; ++i) {
        store_le(stream.index_bytes().data() + i * 32 + 8, first_of(id) + i);
      }
      EXPECT_OK(session->open_stream(stream.info()));
      EXPECT_OK(append(*session, stream.index_page(0, kEvents)));
    }
    EXPECT_OK(session->seal(SessionState::kComplete, ""));
    return session->directory();
  }
  static uint64_t first_of(uint32_t stream) { return stream * 100'000; }
  static std::vector<uint64_t> functions_of(uint32_t stream, uint64_t count = kEvents) {
    std::vector<uint64_t> ids;
    for (uint64_t i = 0; i < count; ++i) ids.push_back(first_of(stream) + i);
    return ids;
  }
  static std::vector<uint64_t> both(std::vector<uint64_t> ids, const std::vector<uint64_t>& more) {
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }
  std::vector<uint64_t> stored(const std::string& directory) {
    const auto functions = stored_functions(fs, directory, nullptr);
    EXPECT_OK(functions);
    return functions.ok() ? functions->sorted() : std::vector<uint64_t>{};
  }
};

TEST_F(StoredFunctionsTest, AreThoseOfEveryThread) {
  for (const atf::Version version : {atf::Version::kV1, atf::Version::kV2}) {
    const std::string directory = record(version);
    EXPECT_EQ(stored(directory), both(functions_of(1), functions_of(2)));
  }
}

TEST_F(StoredFunctionsTest, FindsFunctionsOfAShortFile) {
  const std::string directory = record();
  const std::string index = directory + "/thread_0/index.atf";
  std::vector<uint8_t> bytes = read_file(index);
  for (const uint64_t events : {8192, 8193, 5, 0}) {
    bytes.resize(64 + events * 32 + 31);
    write_file(index, bytes);
    EXPECT_EQ(stored(directory), both(functions_of(1, events), functions_of(2))) << events;
  }
}

TEST_F(StoredFunctionsTest, FilesThatCannotBeReadAreLeftOut) {
  const std::string directory = record();
  const std::string index = directory + "/thread_0/index.atf";
  std::vector<uint8_t> bytes = read_file(index);
  bytes[0] ^= 1;
  write_file(index, bytes);
  std::filesystem::create_directory(directory + "/thread_x");
  std::filesystem::create_directory(directory + "/thread_7");
  EXPECT_EQ(stored(directory), functions_of(2));
  const auto nowhere = stored_functions(fs, directory + "/nowhere", nullptr);
  ASSERT_FALSE(nowhere.ok());
  EXPECT_EQ(nowhere.code(), Code::kNotFound);
}

TEST_F(StoredFunctionsTest, StopsWhenCancelled) {
  const std::string directory = record();
  std::atomic<bool> stop = true;
  const auto cancelled = stored_functions(fs, directory, &stop);
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.code(), Code::kCancelled);
  stop = false;
  EXPECT_OK(stored_functions(fs, directory, &stop));
}

}  // namespace
}  // namespace collect::storage::test
