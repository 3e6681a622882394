// The threads of a session: whose files are open, what commit() syncs, what they add up to.
#include "storage/session/session_threads.h"

#include "tests/storage/fake_budget.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class SessionThreadsTest : public testing::Test {
 protected:
  // A thread that was just made has its two files open: events and journal.
  uint32_t add(uint32_t stream_id) {
    auto writer = ThreadWriter::create(fs_, Durability::kOs,
                                       root_.path() + "/" + thread_directory_name(stream_id),
                                       {atf::Version::kV2, atf::Arch::kX86_64, atf::Os::kLinux,
                                        atf::ClockType::kBoottime, stream_id},
                                       {stream_id, 0, ""});
    EXPECT_OK(writer);
    const uint32_t slot = threads_.add(std::move(*writer));
    threads_.set_stream(slot, stream_id);
    return slot;
  }
  bool is_open(uint32_t slot) const { return threads_.writer(slot)->open_files() != 0; }

  TemporaryDirectory root_;
  PosixFs fs_;
  FakeBudget budget_;
  SessionThreads threads_{&budget_, true};
};

TEST_F(SessionThreadsTest, LeastRecentlyWrittenAreClosedFirst) {
  for (uint32_t stream = 10; stream < 18; ++stream) add(stream);
  const size_t each = threads_.writer(0)->open_files();
  ASSERT_GT(each, 0u);
  EXPECT_EQ(budget_.held, 8 * each);
  threads_.written(0);  // the oldest is the newest now
  budget_.limit = 8 * each;
  EXPECT_OK(threads_.limit_open_files());
  EXPECT_EQ(budget_.held, 8 * each) << "nothing is closed at the limit";
  budget_.limit = 8 * each - 1;
  EXPECT_OK(threads_.limit_open_files());
  EXPECT_LE(budget_.held, budget_.limit - budget_.limit / 4);
  EXPECT_TRUE(is_open(0));
  EXPECT_FALSE(is_open(1));
  EXPECT_FALSE(is_open(2));
  EXPECT_TRUE(is_open(7));
  EXPECT_OK(threads_.close_files());
  EXPECT_EQ(budget_.held, 0u);
}

TEST_F(SessionThreadsTest, WorkIsTriedAgainWithoutTheFilesOfOthers) {
  const uint32_t first = add(1), second = add(2);
  int tries = 0;
  const auto work = [&]() -> Status {
    if (++tries == 1) return Error{Code::kExhausted, "no descriptors"};
    return {};
  };
  EXPECT_OK(threads_.with_descriptors(threads_.writer(second), work));
  EXPECT_EQ(tries, 2);
  EXPECT_FALSE(is_open(first));
  EXPECT_TRUE(is_open(second)) << "its own stay";
  tries = 0;
  EXPECT_EQ(threads_.with_descriptors(threads_.writer(second), work).code(), Code::kExhausted)
      << "there is nothing left to close";
  EXPECT_EQ(tries, 1);
  const auto broken = [&]() -> Status {
    ++tries;
    return Error{Code::kIo, "broken"};
  };
  EXPECT_EQ(threads_.with_descriptors(nullptr, broken).code(), Code::kIo);
  EXPECT_EQ(tries, 2) << "descriptors mend no other error";
}

TEST_F(SessionThreadsTest, FilesBesideThoseOfThreadsCountToo) {
  add(1);
  const size_t own = budget_.held;
  threads_.hold_others(3);
  EXPECT_EQ(budget_.held, own + 3);
  threads_.hold_others(0);
  EXPECT_EQ(budget_.held, own);
}

// What a manifest had before a crash stays known, and is lost at the seal if no one sent it again.
TEST_F(SessionThreadsTest, CountsRecordsMissingFromTheFilesAsLost) {
  auto writer = ThreadWriter::create(
      fs_, Durability::kOs, root_.path() + "/thread_0",
      {atf::Version::kV2, atf::Arch::kX86_64, atf::Os::kLinux, atf::ClockType::kBoottime, 9},
      {5, 0, ""});
  ASSERT_OK(writer);
  const uint32_t slot = threads_.add(std::move(*writer), 7, 0);
  const uint32_t unreadable = threads_.add(nullptr, 3, 0);
  threads_.set_stream(slot, 5);
  threads_.set_stream(unreadable, 6);
  EXPECT_EQ(threads_.slot_of(5), slot);
  EXPECT_EQ(threads_.slot_of(7), std::nullopt);
  Manifest manifest;
  manifest.threads.resize(2);
  manifest.threads[1].events = 42;
  threads_.describe(manifest);
  EXPECT_EQ(manifest.threads[0].index_next, 7u);
  EXPECT_EQ(manifest.threads[0].lost_events, 0u);
  EXPECT_EQ(manifest.threads[1].events, 42u) << "no one can say anything else";
  ASSERT_EQ(threads_.positions().size(), 1u);
  EXPECT_EQ(threads_.positions()[0].stream_id, 5u);

  threads_.account_for_damage(false);
  threads_.describe(manifest);
  EXPECT_EQ(manifest.threads[0].lost_events, 7u);
  ASSERT_EQ(manifest.gaps.size(), 1u);
  EXPECT_EQ(manifest.gaps[0].reasons, static_cast<uint32_t>(kLostDamaged));
  SessionTotals totals;
  threads_.add_to(totals);
  EXPECT_EQ(totals.threads, 2u);
  EXPECT_EQ(totals.lost_events, 7u);
}

}  // namespace
}  // namespace collect::storage::test
