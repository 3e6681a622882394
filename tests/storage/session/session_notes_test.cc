// What a session receives beside its records: what of it is kept, and what is kept if the program
// dies before a manifest says it.
#include <algorithm>

#include "storage/rebuild/capture_replay.h"
#include "storage/session/session.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class SessionNotesTest : public SessionTest {
 protected:
  std::vector<DetailWindow> windows_after_seal(Session& session) {
    EXPECT_OK(session.seal(SessionState::kComplete, ""));
    return manifest_of(session.directory()).detail_windows;
  }
};

TEST_F(SessionNotesTest, WindowEndsWhereTheNextBegins) {
  auto session = make();
  ASSERT_OK(session->detail_state({"off", 3, 0, 0, "nothing was on"}));
  ASSERT_OK(session->detail_state({"armed", 10, 4, 2, "command"}));
  ASSERT_OK(session->detail_state({"armed", 10, 4, 2, "repeated"}));
  ASSERT_OK(session->detail_state({"on", 9, 0, 0, "older than what is known"}));
  ASSERT_OK(session->detail_state({"on", 20, 15, 3, "trigger"}));
  ASSERT_OK(session->detail_state({"off", 30, 0, 0, "limit"}));
  ASSERT_OK(session->detail_state({"off", 31, 0, 0, "off already"}));
  ASSERT_OK(session->detail_state({"on", 29, 0, 0, "older than what is known"}));
  const auto windows = windows_after_seal(*session);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0].mode, "armed");
  EXPECT_EQ(windows[0].start_ns, 10u);
  EXPECT_EQ(windows[0].end_ns, 20u);
  EXPECT_EQ(windows[0].pre_roll_from_ns, 4u);
  EXPECT_EQ(windows[0].pre_roll_records, 2u);
  EXPECT_EQ(windows[0].reason, "command");
  EXPECT_EQ(windows[1].mode, "on");
  EXPECT_EQ(windows[1].start_ns, 20u);
  EXPECT_EQ(windows[1].end_ns, 30u);
  EXPECT_EQ(windows[1].pre_roll_records, 3u);
  EXPECT_EQ(windows[1].reason, "limit");
}

// Seen: the window of a session without events ended at 1 ns, long before its begin.
TEST_F(SessionNotesTest, OpenWindowEndsWithTheLastEvent) {
  auto empty = make();
  ASSERT_OK(empty->detail_state({"on", 5000, 0, 0, "command"}));
  EXPECT_EQ(windows_after_seal(*empty).at(0).end_ns, 5000u);

  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10);
  const uint64_t last = stream.time_ns();
  for (const uint64_t start : {last - 1, last, last + 1}) {
    auto session = make();
    ASSERT_OK(session->open_stream(stream.info()));
    ASSERT_OK(append(*session, stream.index_page(0, 10)));
    ASSERT_OK(session->detail_state({"on", start, 0, 0, "command"}));
    EXPECT_EQ(windows_after_seal(*session).at(0).end_ns, std::max(start, last));
  }
}

TEST_F(SessionNotesTest, WindowsAndMarkersBeyondTheirLimitsAreCounted) {
  auto session = make();
  for (uint64_t i = 0; i < kMaxDetailWindows + 2; ++i) {
    ASSERT_OK(session->detail_state({"on", 100 + 2 * i, 0, 0, ""}));
    ASSERT_OK(session->detail_state({"off", 101 + 2 * i, 0, 0, ""}));
  }
  for (uint64_t i = 0; i < kMaxMarkers + 3; ++i) ASSERT_OK(session->marker({i, "here"}));
  const auto windows = windows_after_seal(*session);
  const Manifest manifest = manifest_of(session->directory());
  ASSERT_EQ(windows.size(), size_t{kMaxDetailWindows});
  EXPECT_EQ(windows.back().start_ns, 100 + 2 * (kMaxDetailWindows - 1));
  EXPECT_EQ(windows.back().end_ns, 101 + 2 * (kMaxDetailWindows - 1));
  EXPECT_EQ(manifest.detail_windows_left_out, 2u);
  ASSERT_EQ(manifest.markers.size(), size_t{kMaxMarkers});
  EXPECT_EQ(manifest.markers.back().at_ns, kMaxMarkers - 1);
  EXPECT_EQ(manifest.markers_left_out, 3u);
}

// Clock measurements become sparser, evenly: the first and the newest stay.
TEST_F(SessionNotesTest, DropsEverySecondOfTooManyClockMeasurements) {
  const auto kept_of = [&](uint64_t count) {
    auto session = make();
    for (uint64_t i = 0; i < count; ++i) {
      EXPECT_OK(session->clock_sync({i, int64_t(i), 1, 0.5}));
    }
    EXPECT_OK(session->seal(SessionState::kComplete, ""));
    std::vector<uint64_t> kept;
    for (const ClockSync& sync : manifest_of(session->directory()).clock_syncs) {
      kept.push_back(sync.at_ns);
    }
    return kept;
  };
  std::vector<uint64_t> all(kMaxClockSyncs);
  for (uint64_t i = 0; i < all.size(); ++i) all[i] = i;
  EXPECT_EQ(kept_of(kMaxClockSyncs), all);
  std::vector<uint64_t> thinned;
  for (uint64_t i = 0; i < kMaxClockSyncs; i += 2) thinned.push_back(i);
  thinned.push_back(kMaxClockSyncs - 1);
  thinned.push_back(kMaxClockSyncs);
  EXPECT_EQ(kept_of(kMaxClockSyncs + 1), thinned);
}

// The collector dies right after a commit: the container has everything that was noted by then.
TEST_F(SessionNotesTest, ContainerHasNotesFromBeforeTheCommit) {
  SessionOptions with = options();
  with.capture.enabled = true;
  with.capture.roll_bytes = uint64_t{1} << 30;
  FakeStream stream(atf::Version::kV2, 1, 100);
  stream.add_many(10);
  auto session = Session::create(fs, with, test_identity());
  ASSERT_OK(session);
  ASSERT_OK((*session)->open_stream(stream.info()));
  ASSERT_OK((*session)->commit());  // the container begins, with a manifest of its own
  ASSERT_OK(append(**session, stream.index_page(0, 10)));
  ASSERT_OK((*session)->detail_state({"on", 1005, 1001, 3, "command"}));
  ASSERT_OK((*session)->detail_state({"off", 1009, 0, 0, "limit"}));
  ASSERT_OK((*session)->function_filter({1006, {"parse*"}, {"log"}, 0}));
  ASSERT_OK((*session)->clock_sync({2000, -5, 7, 0.5}));
  ASSERT_OK((*session)->note("something unusual"));
  ASSERT_OK((*session)->marker({1007, "the door opens"}));
  ASSERT_OK((*session)->add_stalls(
      std::vector<StreamStall>{{0, make_stall(StallKind::kPageWait, 1010, 1020)}}));
  (*session)->set_lost_without_stream(4);
  StreamEnd end = stream.end();
  end.thread_name = "worker";
  ASSERT_OK((*session)->close_stream(end));
  ASSERT_OK((*session)->commit());
  // The files as they are now, while the session is still open.
  const std::vector<uint8_t> bytes = read_file((*session)->directory() + "/capture-000001.rtc");

  SessionOptions target = options();
  target.root = root.path() + "/rebuilt";
  CaptureReplay replay(fs, target);
  ASSERT_OK(replay.add("container", bytes));
  const auto rebuilt = replay.finish();
  ASSERT_OK(rebuilt);
  const Manifest manifest = manifest_of(rebuilt->directory);
  EXPECT_EQ(manifest.totals.events, 10u);
  ASSERT_EQ(manifest.detail_windows.size(), 1u);
  EXPECT_EQ(manifest.detail_windows[0].start_ns, 1005u);
  EXPECT_EQ(manifest.detail_windows[0].end_ns, 1009u);
  EXPECT_EQ(manifest.detail_windows[0].pre_roll_records, 3u);
  ASSERT_EQ(manifest.function_filters.size(), 1u);
  EXPECT_EQ(manifest.function_filters[0].only, std::vector<std::string>{"parse*"});
  ASSERT_EQ(manifest.clock_syncs.size(), 1u);
  EXPECT_EQ(manifest.clock_syncs[0].offset_ns, -5);
  EXPECT_EQ(1, std::count_if(manifest.notes.begin(), manifest.notes.end(),
                             [](const Note& note) { return note.what == "something unusual"; }));
  ASSERT_EQ(manifest.markers.size(), 1u);
  EXPECT_EQ(manifest.markers[0].text, "the door opens");
  ASSERT_EQ(manifest.stalls.size(), 1u);
  EXPECT_EQ(manifest.stalls[0].last_ns, 1020u);
  EXPECT_EQ(manifest.lost_without_stream, 4u);
  ASSERT_EQ(manifest.threads.size(), 1u);
  EXPECT_TRUE(manifest.threads[0].ended);
  EXPECT_EQ(manifest.threads[0].name, "worker");
}

}  // namespace
}  // namespace collect::storage::test
