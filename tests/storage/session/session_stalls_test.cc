// Stalls of threads and of the whole process: listed in order, bounded, exactly counted, and still
// there after a crash, and after a container was made a session again.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "storage/manifest/manifest_file.h"
#include "storage/model/switch_times.h"
#include "storage/rebuild/capture_replay.h"
#include "storage/thread/losses.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

Stall waited(uint64_t first_ns, uint64_t last_ns) {
  return make_stall(StallKind::kPageWait, first_ns, last_ns);
}

std::vector<Stall> listed(const StallList& list) {
  std::vector<Stall> out;
  list.append_to(out, 3);
  return out;
}

TEST(StallList, RepeatEndsNoLaterThanTheNewest) {
  StallList list;
  EXPECT_FALSE(list.is_repeat(waited(10, 20)));
  list.add(waited(10, 20), 100);
  EXPECT_TRUE(list.is_repeat(waited(10, 20)));
  EXPECT_TRUE(list.is_repeat(waited(5, 8)));
  EXPECT_FALSE(list.is_repeat(waited(30, 40)));
  // Another kind has an order of its own: a machine may sleep within a stop.
  EXPECT_FALSE(list.is_repeat(make_stall(StallKind::kStopped, 12, 18)));
}

TEST(StallList, AddsTheUnknownRestOfJoinedStalls) {
  StallList list;
  list.add(waited(10, 20), 100);
  Stall joined = waited(10, 50);
  joined.count = 3;
  joined.stalled_ns = 25;
  list.add(joined, 100);
  const auto stalls = listed(list);
  ASSERT_EQ(stalls.size(), 2u);
  EXPECT_EQ(stalls[1].first_ns, 20u);
  EXPECT_EQ(stalls[1].stalled_ns, 25u);
}

// Pairs that are 10 ns apart, a second between the pairs: the pairs become one, and keep nearly
// their places.
TEST(StallList, ClosestAreJoinedFirst) {
  StallList list;
  constexpr uint64_t kSecond = 1'000'000'000;
  for (uint64_t i = 0; i < 8; ++i) {
    list.add(waited(i * kSecond + 1000, i * kSecond + 2000), 16);
    list.add(waited(i * kSecond + 2010, i * kSecond + 3000), 16);
  }
  EXPECT_EQ(listed(list).size(), 16u);
  list.add(waited(9 * kSecond, 9 * kSecond + 5), 16);
  const auto stalls = listed(list);
  ASSERT_EQ(stalls.size(), 9u);
  for (uint64_t i = 0; i < 8; ++i) {
    EXPECT_EQ(stalls[i].first_ns, i * kSecond + 1000);
    EXPECT_EQ(stalls[i].last_ns, i * kSecond + 3000);
    EXPECT_EQ(stalls[i].count, 2u);
    EXPECT_EQ(stalls[i].stalled_ns, 1990u);
    EXPECT_EQ(stalls[i].thread, 3u);
  }
  EXPECT_EQ(stalls[8].count, 1u);
  EXPECT_EQ(list.totals().count, 17u);
  EXPECT_EQ(list.totals().page_wait_ns, 8 * 1990u + 5);
}

TEST(StallList, IsNeverLongerThanItMayBe) {
  StallList list;
  uint64_t stalled_ns = 0;
  for (uint64_t i = 0; i < 10'000; ++i) {
    list.add(waited(100 * i, 100 * i + 1 + i % 50), 64);
    stalled_ns += 1 + i % 50;
    ASSERT_LE(listed(list).size(), 64u);
  }
  const auto stalls = listed(list);
  uint64_t count = 0;
  uint64_t sum_ns = 0;
  uint64_t end_ns = 0;
  for (const Stall& stall : stalls) {
    EXPECT_GE(stall.first_ns, end_ns);
    EXPECT_LE(stall.stalled_ns, stall.last_ns - stall.first_ns);
    end_ns = stall.last_ns;
    count += stall.count;
    sum_ns += stall.stalled_ns;
  }
  EXPECT_EQ(count, 10'000u);
  EXPECT_EQ(sum_ns, stalled_ns);
}

class SessionStalls : public SessionTest {
 protected:
  SessionStalls() : stream_(atf::Version::kV2, 1, 100) { stream_.add_many(40); }

  std::unique_ptr<Session> begin(bool with_container = false) {
    SessionOptions with = options();
    with.capture.enabled = with_container;
    auto session = Session::create(fs, with, test_identity());
    EXPECT_TRUE(session.ok());
    EXPECT_OK((*session)->open_stream(stream_.info()));
    return std::move(*session);
  }
  static Status add(Session& session, uint32_t stream, const Stall& stall) {
    return session.add_stalls(std::vector<StreamStall>{{stream, stall}});
  }
  // A thread's stall, a page, another stall; and one of the process.
  void record(Session& session) {
    ASSERT_OK(add(session, 1, waited(1010, 1020)));
    ASSERT_OK(append(session, stream_.index_page(0, 20)));
    ASSERT_OK(add(session, 1, waited(1200, 1500)));
    ASSERT_OK(add(session, 0, make_stall(StallKind::kStopped, 2000, 9000)));
    ASSERT_OK(append(session, stream_.index_page(20, 20)));
  }
  void expect_recorded(const Manifest& manifest) {
    ASSERT_EQ(manifest.stalls.size(), 3u);
    EXPECT_EQ(manifest.stalls[0].kind, StallKind::kStopped);
    EXPECT_FALSE(manifest.stalls[0].thread.has_value());
    EXPECT_EQ(manifest.stalls[0].first_ns, 2000u);
    EXPECT_EQ(manifest.stalls[0].last_ns, 9000u);
    EXPECT_EQ(manifest.stalls[1].first_ns, 1010u);
    EXPECT_EQ(manifest.stalls[2].thread, 0u);
    EXPECT_EQ(manifest.stalls[2].last_ns, 1500u);
    ASSERT_EQ(manifest.threads.size(), 1u);
    EXPECT_EQ(manifest.threads[0].stalls.count, 2u);
    EXPECT_EQ(manifest.threads[0].stalls.stalled_ns, 310u);
    EXPECT_EQ(manifest.totals.stalls.count, 3u);
    EXPECT_EQ(manifest.totals.stalls.stalled_ns, 7310u);
    EXPECT_EQ(manifest.totals.stalls.page_wait_ns, 310u);
  }

  FakeStream stream_;
};

TEST_F(SessionStalls, StandInTheManifest) {
  auto session = begin();
  record(*session);
  record(*session);  // reported again
  EXPECT_EQ(session->totals().stalls.stalled_ns, 7310u);
  ASSERT_OK(session->close_stream(stream_.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  expect_recorded(manifest_of(session->directory()));
  const auto text = read_manifest_json(fs, session->directory());
  ASSERT_OK(text);
  const json manifest = json::parse(*text);
  EXPECT_EQ(manifest["stalls"][0]["kind"], "stopped");
  EXPECT_FALSE(manifest["stalls"][0].contains("thread"));
  EXPECT_EQ(manifest["stalls"][1],
            json({{"kind", "page_wait"}, {"first_ns", 1010}, {"last_ns", 1020}, {"thread", 0}}));
  EXPECT_EQ(manifest["threads"][0]["stall_count"], 2);
  EXPECT_EQ(manifest["threads"][0]["stalled_ns"], 310);
  EXPECT_EQ(manifest["totals"]["stall_count"], 3);
  EXPECT_EQ(manifest["totals"]["page_wait_ns"], 310);
}

TEST_F(SessionStalls, RefusesStallsOfUnopenedStreams) {
  auto session = begin();
  const Status added = add(*session, 9, waited(10, 20));
  EXPECT_EQ(added.code(), Code::kDamaged);
  EXPECT_THAT(added.error().message, HasSubstr("stream 9, which was not opened"));
}

// The manifest on disk is of the beginning: the thread's journal has its stalls.
TEST_F(SessionStalls, AreThereAfterTheDaemonWasKilled) {
  auto session = begin();
  ASSERT_OK(append(*session, stream_.index_page(0, 1)));
  ASSERT_OK(add(*session, 0, make_stall(StallKind::kStopped, 2000, 9000)));
  ASSERT_OK(session->commit());
  ASSERT_OK(add(*session, 1, waited(1010, 1020)));
  ASSERT_OK(append(*session, stream_.index_page(1, 39)));
  ASSERT_OK(add(*session, 1, waited(1200, 1500)));
  ASSERT_OK(session->commit());
  const std::string directory = session->directory();
  EXPECT_EQ(manifest_of(directory).stalls.size(), 1u);
  session.reset();
  auto resumed = Session::resume(fs, options(), directory);
  ASSERT_OK(resumed);
  EXPECT_EQ((*resumed)->totals().stalls.stalled_ns, 7310u);
  record(**resumed);  // the agent did not hear that they were stored
  (*resumed).reset();
  auto recovered = recover_session(fs, options(), directory);
  ASSERT_OK(recovered);
  EXPECT_EQ(recovered->totals.events, 40u);
  EXPECT_TRUE(recovered->problems.empty()) << recovered->problems[0];
  expect_recorded(manifest_of(directory));
  EXPECT_FALSE(fs.exists(directory + "/thread_0/" + kStreamJournalFile));
}

// Of a manifest that someone changed, or whose thread is gone: stalls of threads that there are
// not are left out, and the others stay with theirs.
TEST_F(SessionStalls, LeavesOutStallsOfMissingThreads) {
  auto session = begin();
  ASSERT_OK(session->open_stream({2, 200, "second", 1000}));
  record(*session);
  ASSERT_OK(session->suspend("the collector stopped"));
  const std::string directory = session->directory();
  session.reset();
  Manifest changed = manifest_of(directory);
  std::filesystem::remove_all(directory + "/thread_0");
  std::erase_if(changed.threads, [](const ManifestThread& thread) { return thread.id == 0; });
  for (const uint32_t thread : {1u, 7u}) {
    changed.stalls.push_back(waited(50'000, 50'100));
    changed.stalls.back().thread = thread;
  }
  ASSERT_OK(write_manifest(fs, directory, changed, false));
  ASSERT_OK(recover_session(fs, options(), directory));
  const Manifest manifest = manifest_of(directory);
  ASSERT_EQ(manifest.stalls.size(), 2u);
  EXPECT_EQ(manifest.stalls[0].kind, StallKind::kStopped);
  EXPECT_EQ(manifest.stalls[1].thread, 1u);
  EXPECT_EQ(manifest.stalls[1].first_ns, 50'000u);
  EXPECT_EQ(manifest.threads.at(0).stalls.stalled_ns, 100u);
}

TEST_F(SessionStalls, RecoversStallsWithoutAManifest) {
  auto session = begin();
  record(*session);
  const std::string directory = session->directory();
  session.reset();
  std::filesystem::remove(directory + "/manifest.json");
  ASSERT_OK(recover_session(fs, options(), directory));
  const Manifest manifest = manifest_of(directory);
  EXPECT_EQ(manifest.stalls.size(), 2u);
  EXPECT_EQ(manifest.threads[0].stalls.stalled_ns, 310u);
}

TEST_F(SessionStalls, StallsKeepAGapAndALink) {
  auto session = begin();
  FakeStream linked(atf::Version::kV2, 2, 200);
  linked.add_many(30, FakeStream::Detail::kLinked);
  ASSERT_OK(session->open_stream(linked.info()));
  ASSERT_OK(append(*session, linked.index_page(0, 10)));
  ASSERT_OK(add(*session, 2, waited(1010, 1020)));
  Page behind = linked.index_page(12, 18);  // two were overwritten
  behind.lost_reasons = kLostOverwritten;
  ASSERT_OK(append(*session, behind));
  ASSERT_OK(add(*session, 2, waited(1030, 1040)));
  ASSERT_OK(append(*session, linked.detail_page(0, 30)));
  ASSERT_OK(session->close_stream(stream_.end()));
  ASSERT_OK(session->close_stream(linked.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  const auto expected = linked.expected({10, 11}, {});
  EXPECT_EQ(section_of(session->directory() + "/thread_1/index.atf"), expected.index);
  EXPECT_EQ(section_of(session->directory() + "/thread_1/detail.atf"), expected.detail);
  EXPECT_EQ(manifest_of(session->directory()).threads[1].stalls.count, 2u);
}

TEST_F(SessionStalls, ManyThreadsShareTheList) {
  auto session = begin();
  constexpr uint32_t kThreads = 200;
  for (uint32_t i = 2; i <= kThreads; ++i) {
    ASSERT_OK(session->open_stream({i, 100 + i, "thread", 1000}));
  }
  constexpr uint64_t kStalls = 1000;
  for (uint32_t i = 1; i <= kThreads; ++i) {
    std::vector<StreamStall> stalls;
    for (uint64_t k = 0; k < kStalls; ++k) stalls.push_back({i, waited(1000 * k, 1000 * k + 1)});
    ASSERT_OK(session->add_stalls(stalls));
  }
  ASSERT_OK(session->commit());
  EXPECT_EQ(session->totals().stalls.count, kThreads * kStalls);
  ASSERT_OK(session->seal(SessionState::kRecovered, ""));
  const Manifest manifest = manifest_of(session->directory());
  EXPECT_LE(manifest.stalls.size(), kMaxStallsListed);
  uint64_t count = 0;
  for (const Stall& stall : manifest.stalls) count += stall.count;
  EXPECT_EQ(count, kThreads * kStalls);
  EXPECT_EQ(manifest.totals.stalls.stalled_ns, kThreads * kStalls);
  const auto text = read_manifest_json(fs, session->directory());
  ASSERT_OK(text);
  EXPECT_THAT(*text, HasSubstr("\"joined\""));
}

TEST_F(SessionStalls, ComeBackOutOfAContainer) {
  auto session = begin(true);
  record(*session);
  ASSERT_OK(session->commit());
  ASSERT_OK(session->close_stream(stream_.end()));
  for (const bool sealed : {false, true}) {
    SCOPED_TRACE(sealed ? "whole" : "cut off before its end");
    if (sealed) ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
    std::vector<uint8_t> bytes;
    for (const auto& entry : std::filesystem::directory_iterator(session->directory())) {
      if (entry.path().extension() == ".rtc") bytes = read_file(entry.path().string());
    }
    SessionOptions target;
    target.root = root.path() + (sealed ? "/whole" : "/cut");
    CaptureReplay replay(fs, target);
    ASSERT_OK(replay.add("container", bytes));
    auto rebuilt = replay.finish();
    ASSERT_OK(rebuilt);
    expect_recorded(manifest_of(rebuilt->directory));
  }
}

// Times off the processor are in switches.bin, each of them, however many there are.
class SessionSwitches : public SessionStalls {
 protected:
  static constexpr uint64_t kSwitches = 10'000;

  static Stall off(StallKind kind, uint64_t first_ns, uint64_t last_ns) {
    return make_stall(kind, first_ns, last_ns);
  }
  // Of two threads, one blocked and one preempted; in frames as they would arrive.
  void record_switches(Session& session) {
    ASSERT_OK(session.open_stream({2, 200, "second", 1000}));
    ASSERT_OK(append(session, stream_.index_page(0, 20)));
    std::vector<StreamStall> arrived;
    for (uint64_t i = 0; i < kSwitches; ++i) {
      arrived.push_back({1, off(StallKind::kBlocked, 1000 + 100 * i, 1000 + 100 * i + i % 90)});
      arrived.push_back({2, off(StallKind::kPreempted, 1050 + 100 * i, 1050 + 100 * i + 7)});
      if (arrived.size() < 64) continue;
      ASSERT_OK(session.add_stalls(arrived));
      arrived.clear();
    }
    arrived.push_back({1, {StallKind::kBlocked, 2'000'000, 3'000'000, 600'000, 4, {}}});
    ASSERT_OK(session.add_stalls(arrived));
    ASSERT_OK(append(session, stream_.index_page(20, 20)));
  }
  void expect_switches(const std::string& directory) {
    std::vector<Stall> switches;
    ASSERT_OK(read_switches(fs, directory, switches));
    std::erase_if(switches, [](const Stall& one) { return one.thread == 1u; });
    ASSERT_EQ(switches.size(), kSwitches + 1);
    for (uint64_t i = 0; i < kSwitches; ++i) {
      ASSERT_EQ(switches[i].kind, StallKind::kBlocked);
      ASSERT_EQ(switches[i].first_ns, 1000 + 100 * i);
      ASSERT_EQ(switches[i].last_ns, 1000 + 100 * i + i % 90);
    }
    EXPECT_EQ(switches.back().count, 4u);
    EXPECT_EQ(switches.back().stalled_ns, 600'000u);
    const Manifest manifest = manifest_of(directory);
    EXPECT_TRUE(manifest.stalls.empty());
    EXPECT_EQ(manifest.totals.stalls.switches, 2 * kSwitches + 4);
    EXPECT_EQ(manifest.totals.stalls.preempted_ns, 7 * kSwitches);
    EXPECT_EQ(manifest.threads.at(0).stalls.switches, kSwitches + 4);
    EXPECT_EQ(manifest.totals.stalls.count, 0u);
  }
  std::string file_of(const std::string& directory) { return directory + "/" + kSwitchesFile; }
};

TEST_F(SessionSwitches, AreListedOneByOne) {
  auto session = begin();
  record_switches(*session);
  record_switches(*session);  // reported again
  ASSERT_OK(session->seal(SessionState::kComplete, ""));
  expect_switches(session->directory());
  EXPECT_LT(std::filesystem::file_size(file_of(session->directory())), 6 * 2 * kSwitches);
}

TEST_F(SessionSwitches, AreThereAfterTheDaemonWasKilled) {
  auto session = begin();
  record_switches(*session);
  ASSERT_OK(session->commit());
  const std::string directory = session->directory();
  session.reset();
  std::ofstream(file_of(directory), std::ios::app) << "half a fr";
  auto resumed = Session::resume(fs, options(), directory);
  ASSERT_OK(resumed);
  record_switches(**resumed);  // the agent did not hear that they were stored
  (*resumed).reset();
  ASSERT_OK(recover_session(fs, options(), directory));
  expect_switches(directory);
}

TEST_F(SessionSwitches, ComeBackOutOfAContainer) {
  auto session = begin(true);
  record_switches(*session);
  ASSERT_OK(session->close_stream(stream_.end()));
  ASSERT_OK(session->seal(SessionState::kComplete, "exit"));
  const std::vector<uint8_t> bytes = read_file(session->directory() + "/capture-000001.rtc");
  SessionOptions target;
  target.root = root.path() + "/rebuilt";
  CaptureReplay replay(fs, target);
  ASSERT_OK(replay.add("container", bytes));
  auto rebuilt = replay.finish();
  ASSERT_OK(rebuilt);
  EXPECT_TRUE(rebuilt->missing.empty()) << rebuilt->missing[0].what;
  expect_switches(rebuilt->directory);
}

TEST(ManifestStalls, ManifestOfAnEarlierVersionHasNone) {
  const auto manifest = manifest_from_json(
      R"({"threads":[{"id":0,"events":5}],"totals":{"events":5},"state":"complete"})");
  ASSERT_OK(manifest);
  EXPECT_TRUE(manifest->stalls.empty());
  EXPECT_EQ(manifest->totals.stalls.count, 0u);
}

TEST(ManifestStalls, LeavesOutInvalidStalls) {
  const auto manifest = manifest_from_json(R"({"threads":[],"stalls":[
      {"kind":"page_wait","first_ns":10,"last_ns":10},
      {"kind":"of_later","first_ns":10,"last_ns":20},
      {"first_ns":10,"last_ns":20}, 7,
      {"kind":"page_wait","first_ns":10,"last_ns":30,"joined":4,"stalled_ns":900}]})");
  ASSERT_OK(manifest);
  ASSERT_EQ(manifest->stalls.size(), 1u);
  EXPECT_EQ(manifest->stalls[0].count, 4u);
  EXPECT_EQ(manifest->stalls[0].stalled_ns, 20u);  // no more than there was time
}

}  // namespace
}  // namespace collect::storage::test
