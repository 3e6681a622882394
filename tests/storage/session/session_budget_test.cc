// What a session does when this machine is out of descriptors, and how often it writes manifests.
#include "storage/session/session_budget.h"
#include "storage/session/live_manifest.h"
#include "tests/storage/fake_budget.h"
#include "tests/storage/limited_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class SessionBudgetTest : public testing::TestWithParam<Durability> {
 protected:
  std::unique_ptr<Session> create() {
    SessionOptions options;
    options.root = root_.path();
    options.durability = GetParam();
    options.symbolize = false;
    options.keep_free_bytes = 0;
    options.capture.enabled = true;
    options.clock = &clock_;
    options.budget = &budget_;
    SessionIdentity identity;
    identity.pid = 7;
    identity.arch = atf::Arch::kX86_64;
    identity.os = atf::Os::kLinux;
    identity.clock = atf::ClockType::kBoottime;
    auto session = Session::create(fs_, options, identity);
    EXPECT_OK(session);
    return session.ok() ? std::move(*session) : nullptr;
  }

  // The same call until this machine has what it takes; what ends the shortage is asked each time.
  template <class Call>
  void until_done(Call call) {
    Status status = call();
    for (int round = 0; !status.ok() && status.code() == Code::kExhausted && round < 3; ++round) {
      ++refusals_;
      fs_.max_open = SIZE_MAX;
      status = call();
    }
    ASSERT_OK(status);
  }

  TemporaryDirectory root_;
  FakeClock clock_;
  LimitedFs fs_;
  FakeBudget budget_;
  int refusals_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Durability, SessionBudgetTest,
                         testing::Values(Durability::kOs, Durability::kFsync));

// Out of descriptors at every moment of a recording, one after the other: each call can be made
// again, and the session is complete with every record, in the container too.
TEST_P(SessionBudgetTest, ShortageOfDescriptorsNeverHarmsARecording) {
  for (size_t moment = 0; moment < 9; ++moment) {
    SCOPED_TRACE(moment);
    fs_.max_open = SIZE_MAX;
    auto session = create();
    ASSERT_NE(session, nullptr);
    size_t now = 0;
    const auto at_this_moment = [&](auto call) {
      // Nothing at all may be open: not even what the session keeps open.
      if (now++ == moment) {
        ASSERT_OK(session->release_files());
        fs_.max_open = fs_.open_now.load();
      }
      until_done(call);
      fs_.max_open = SIZE_MAX;
    };
    FakeStream one(atf::Version::kV2, 1, 11);
    FakeStream two(atf::Version::kV2, 2, 12);
    one.add_many(40, FakeStream::Detail::kLinked);
    two.add_many(50);
    ModuleInfo module;
    module.path = "/x";
    at_this_moment([&] { return session->add_modules({&module, 1}); });
    at_this_moment([&] { return session->open_stream(one.info()); });
    at_this_moment([&] { return session->open_stream(two.info()); });
    const Page first[] = {one.index_page(0, 20), two.index_page(5, 20)};  // 5 are missing
    at_this_moment([&] { return session->append_pages(first); });
    at_this_moment([&] { return session->commit(); });
    const Page second[] = {one.detail_page(0, 30), one.index_page(20, 20), two.index_page(30, 10)};
    at_this_moment([&] { return session->append_pages(second); });
    StreamEnd end;
    end.stream_id = 2;
    end.index_count = 50;
    end.end_ns = two.time_ns();
    at_this_moment([&] { return session->close_stream(end); });
    at_this_moment([&] { return session->commit(); });
    const std::string directory = session->directory();
    at_this_moment([&] { return session->seal(SessionState::kComplete, ""); });
    EXPECT_TRUE(session->sealed());
    EXPECT_FALSE(session->failed());
    const SessionTotals totals = session->totals();
    EXPECT_EQ(totals.events, 70u);
    EXPECT_EQ(totals.lost_events, 20u);
    EXPECT_EQ(totals.detail_records, 30u);
    PosixFs real;
    const auto manifest = read_manifest(real, directory);
    ASSERT_OK(manifest);
    EXPECT_EQ(manifest->state, SessionState::kComplete) << manifest->reason;
    ASSERT_EQ(manifest->containers.size(), 1u);
    EXPECT_EQ(manifest->containers[0].state, "finished");
    EXPECT_EQ(manifest->notes.size(), 0u);
    expect_reader_ok(directory);
    session.reset();
    EXPECT_EQ(fs_.open_now, 0u);
  }
  EXPECT_GE(refusals_, 6);  // add_modules needs no descriptor, a commit not always
}

TEST_P(SessionBudgetTest, ReleasedFilesAreClosedAndOpenedAgain) {
  auto session = create();
  FakeStream stream(atf::Version::kV2, 1, 11);
  stream.add_many(40);
  ASSERT_OK(session->open_stream(stream.info()));
  const Page first[] = {stream.index_page(0, 20)};
  ASSERT_OK(session->append_pages(first));
  EXPECT_GT(fs_.open_now, 0u);
  EXPECT_EQ(budget_.held, fs_.open_now);
  ASSERT_OK(session->release_files());
  EXPECT_EQ(fs_.open_now, 0u);
  EXPECT_EQ(fs_.closed_unsynced != 0, GetParam() == Durability::kOs);
  EXPECT_EQ(budget_.held, 0u);
  const Page second[] = {stream.index_page(20, 20)};
  ASSERT_OK(session->append_pages(second));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(session->totals().events, 40u);
}

TEST_P(SessionBudgetTest, SmallerBudgetClosesLeastRecentlyWrittenThreads) {
  auto session = create();
  std::vector<FakeStream> streams;
  for (uint32_t id = 1; id <= 100; ++id) {
    streams.emplace_back(atf::Version::kV2, id, id);
    streams.back().add_many(10);
    ASSERT_OK(session->open_stream(streams.back().info()));
    const Page page[] = {streams.back().index_page(0, 5)};
    ASSERT_OK(session->append_pages(page));
  }
  EXPECT_GE(fs_.open_now, 100u);
  budget_.limit = 20;
  const bool synced = GetParam() == Durability::kFsync;
  ASSERT_OK(session->commit());
  EXPECT_LE(fs_.open_now, 21u);
  if (synced) {
    EXPECT_EQ(fs_.closed_unsynced, 0u);
  } else {
    EXPECT_GT(fs_.closed_unsynced, 0u) << "nothing was closed";
  }
  budget_.limit = 3;
  for (FakeStream& stream : streams) {
    const Page page[] = {stream.index_page(5, 5)};
    ASSERT_OK(session->append_pages(page));
    EXPECT_LE(fs_.open_now, 7u);
  }
  EXPECT_TRUE(!synced || fs_.closed_unsynced == 0);
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(session->totals().events, 1000u);
}

// The descriptors that another thread of the session keeps are used before anybody has to wait.
// Seen: with fsync, those of a thread with a new file were kept, for want of one to sync its name.
TEST_P(SessionBudgetTest, ClosesOtherThreadsFilesWithoutDescriptors) {
  auto session = create();
  FakeStream one(atf::Version::kV2, 1, 11);
  FakeStream two(atf::Version::kV2, 2, 12);
  one.add_many(20);
  two.add_many(20, FakeStream::Detail::kLinked);
  ASSERT_OK(session->open_stream(one.info()));
  ASSERT_OK(session->open_stream(two.info()));
  const Page first[] = {one.index_page(0, 10), two.index_page(0, 10)};
  ASSERT_OK(session->append_pages(first));
  ASSERT_OK(session->commit());
  fs_.max_open = fs_.open_now.load();
  const Page second[] = {two.detail_page(0, 20), two.index_page(10, 10)};
  ASSERT_OK(session->append_pages(second));
  EXPECT_GT(fs_.refused, 0u);
  const Page third[] = {one.index_page(10, 10)};
  ASSERT_OK(session->append_pages(third));
  fs_.max_open = SIZE_MAX;
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  EXPECT_EQ(session->totals().events, 40u);
  EXPECT_EQ(session->totals().detail_records, 20u);
  expect_reader_ok(session->directory());
}

// A stall that was committed is on the disk, also where no record came with it.
TEST_P(SessionBudgetTest, StallAloneIsSyncedByTheCommit) {
  auto session = create();
  FakeStream stream(atf::Version::kV2, 1, 11);
  ASSERT_OK(session->open_stream(stream.info()));
  ASSERT_OK(session->commit());
  const Stall stall = make_stall(StallKind::kPageWait, 1000, 2000);
  ASSERT_OK(session->add_stalls(std::vector<StreamStall>{{1, stall}}));
  ASSERT_OK(session->commit());
  const uint64_t before = fs_.closed_unsynced;
  session.reset();
  EXPECT_EQ(fs_.closed_unsynced != before, GetParam() == Durability::kOs);
}

// A thousand changes of a manifest that is large: each is there at the end, and what is written for
// them has a bound that does not know how many there were.
TEST_P(SessionBudgetTest, ManifestsArePaced) {
  auto session = create();
  constexpr uint32_t kThreads = 2000;
  for (uint32_t id = 1; id <= kThreads; ++id) {
    StreamInfo info{id, id, std::string(200, 'n'), 1};
    ASSERT_OK(session->open_stream(info));
  }
  ASSERT_OK(session->commit());
  const uint64_t before = fs_.manifest_bytes;
  const uint64_t began_ns = clock_.monotonic;
  for (uint32_t change = 1; change <= 1000; ++change) {
    ASSERT_OK(session->detail_state({change % 2 != 0 ? "on" : "off", change * 1000, 0, 0, ""}));
    if (session->manifest_wait_ns() == 0) {
      ASSERT_OK(session->commit());
    }
    clock_.monotonic += 1'000'000;
  }
  clock_.monotonic += session->manifest_wait_ns();
  EXPECT_EQ(session->manifest_wait_ns(), 0u);
  ASSERT_OK(session->commit());
  const uint64_t seconds = (clock_.monotonic - began_ns) / 1'000'000'000 + 1;
  const uint64_t one = fs_.manifest_bytes / fs_.manifests;
  EXPECT_LT(fs_.manifest_bytes - before,
            kManifestBurstBytes + seconds * kManifestBytesPerSecond + 4 * one);
  EXPECT_GT(budget_.written, fs_.manifest_bytes);
  PosixFs real;
  const auto manifest = read_manifest(real, session->directory());
  ASSERT_OK(manifest);
  EXPECT_EQ(manifest->detail_windows.size(), 500u);
}

TEST_P(SessionBudgetTest, FewManifestsDoNotWait) {
  auto session = create();
  for (uint32_t change = 1; change <= 200; ++change) {
    ASSERT_OK(session->detail_state({change % 2 != 0 ? "on" : "off", change * 1000, 0, 0, ""}));
    EXPECT_EQ(session->manifest_wait_ns(), 0u);
    ASSERT_OK(session->commit());
  }
}

TEST(ManifestPaceTest, DataAndTimePayForManifests) {
  ManifestPace pace;
  constexpr uint64_t kSecond = 1'000'000'000;
  uint64_t now = 1000 * kSecond;
  EXPECT_EQ(pace.wait_ns(now), 0u);
  pace.written(kManifestBurstBytes + 2 * kManifestBytesPerSecond, now);
  EXPECT_GE(pace.wait_ns(now), 2 * kSecond);
  EXPECT_LE(pace.wait_ns(now), 2 * kSecond + kSecond / 100);
  EXPECT_EQ(pace.wait_ns(now + pace.wait_ns(now)), 0u);
  pace.data(kDataBytesPerManifestByte * 3 * kManifestBytesPerSecond);
  EXPECT_EQ(pace.wait_ns(now), 0u);
}

TEST(ManifestPaceTest, UsesTheWholeBurstAndSavesNothing) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const uint64_t now = 1000 * kSecond;
  constexpr uint64_t kWhole = kManifestBurstBytes - kManifestFixedBytes;
  ManifestPace pace;
  pace.written(kWhole - 1, now);
  EXPECT_EQ(pace.wait_ns(now), 0u);
  EXPECT_EQ(pace.wait_ns(now - kSecond), 0u) << "a clock that goes back earns nothing";
  pace = {};
  pace.data(uint64_t{1} << 40);
  pace.written(kWhole, now);
  EXPECT_EQ(pace.wait_ns(now), kSecond / kManifestBytesPerSecond) << "one byte is missing";
  EXPECT_EQ(pace.wait_ns(now - kSecond), pace.wait_ns(now));
  pace.data(kDataBytesPerManifestByte);
  EXPECT_EQ(pace.wait_ns(now), 0u);
  // Any debt is forgotten after two minutes.
  pace = {};
  pace.written(uint64_t{1} << 40, now);
  EXPECT_GT(pace.wait_ns(now + 128 * kSecond), 0u);
  EXPECT_EQ(pace.wait_ns(now + 128 * kSecond + 1), 0u);
}

}  // namespace
}  // namespace collect::storage::test
