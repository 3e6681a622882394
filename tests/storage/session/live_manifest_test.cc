// When a session's manifest must be on the disk, and what its lists hold.
#include "storage/session/live_manifest.h"

#include <gtest/gtest.h>

#include "storage/model/seal_reason.h"
#include "storage/session/session_budget.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage {
namespace {

class LiveManifestTest : public testing::Test {
 protected:
  PosixFs fs_;
  test::FakeClock clock_;
  RtcRoller roller_{fs_, "/nowhere", {}, Durability::kOs, clock_};  // writes none
  LiveManifest live_{roller_, clock_};
};

TEST_F(LiveManifestTest, ChangeIsDueAfterTheInterval) {
  live_.written(100, clock_.monotonic_ns());
  EXPECT_FALSE(live_.must_write());
  clock_.monotonic += 2 * kManifestIntervalNs;
  EXPECT_FALSE(live_.must_write()) << "nothing has changed";
  live_.change();
  EXPECT_TRUE(live_.must_write());
  live_.written(100, clock_.monotonic_ns());
  live_.change();
  clock_.monotonic += kManifestIntervalNs - 1;
  EXPECT_FALSE(live_.must_write());
  clock_.monotonic += 1;
  EXPECT_TRUE(live_.must_write());
}

// Writing takes a twentieth of the time at most.
TEST_F(LiveManifestTest, WritesSlowManifestsLessOften) {
  const uint64_t begun = clock_.monotonic_ns();
  clock_.monotonic += kManifestIntervalNs;
  live_.written(100, begun);
  live_.change();
  clock_.monotonic += 20 * kManifestIntervalNs - 1;
  EXPECT_FALSE(live_.must_write());
  clock_.monotonic += 1;
  EXPECT_TRUE(live_.must_write());
}

TEST_F(LiveManifestTest, IsDueAtOnceForPagesAndAcks) {
  live_.written(100, clock_.monotonic_ns());
  EXPECT_FALSE(live_.is_due_before_page());
  live_.change_before_page();
  EXPECT_TRUE(live_.is_due_before_page());
  EXPECT_TRUE(live_.must_write());
  live_.written(100, clock_.monotonic_ns());
  EXPECT_FALSE(live_.is_due_before_page());
  EXPECT_FALSE(live_.must_write());
  live_.change_before_ack();
  EXPECT_FALSE(live_.is_due_before_page());
  EXPECT_TRUE(live_.must_write());
}

TEST_F(LiveManifestTest, OnlyAManifestThatIsNeededIsWaitedFor) {
  live_.written(2 * kManifestBurstBytes, clock_.monotonic_ns());  // in debt
  EXPECT_EQ(live_.wait_ns(nullptr), 0u);
  live_.change();
  EXPECT_EQ(live_.wait_ns(nullptr), 0u);
  live_.change_before_ack();
  const uint64_t wait_ns = live_.wait_ns(nullptr);
  EXPECT_GT(wait_ns, 0u);
  live_.count_data(2 * kDataBytesPerManifestByte * kManifestBurstBytes);
  EXPECT_LT(live_.wait_ns(nullptr), wait_ns) << "records pay for it";
}

TEST_F(LiveManifestTest, RepeatsAreTakenOnce) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_OK(live_.marker({5, "the door opens"}));
    ASSERT_OK(live_.function_filter({.at_ns = 7, .only = {"main"}, .except = {}}));
    ASSERT_OK(live_.detail_state({.mode = "on", .at_ns = 9, .reason = {}}));
  }
  live_.set_lost_without_stream(4);
  live_.set_lost_without_stream(3);
  EXPECT_EQ(live_.manifest.markers.size(), 1u);
  EXPECT_EQ(live_.manifest.function_filters.size(), 1u);
  EXPECT_EQ(live_.manifest.detail_windows.size(), 1u);
  EXPECT_EQ(live_.manifest.lost_without_stream, 4u);
}

TEST_F(LiveManifestTest, FunctionsThatAreSwitchedOffBelongToTheirFilter) {
  FunctionFilter filter{.at_ns = 7, .only = {"main"}, .except = {}};
  ASSERT_OK(live_.function_filter(filter));
  filter.switched_off = {{8, 1, 100}};
  ASSERT_OK(live_.function_filter(filter));
  filter.switched_off.push_back({9, 2, 200});
  ASSERT_OK(live_.function_filter(filter));
  ASSERT_OK(live_.function_filter({.at_ns = 7, .only = {"main"}, .except = {}}));
  ASSERT_EQ(live_.manifest.function_filters.size(), 1u);
  EXPECT_EQ(live_.manifest.function_filters[0].switched_off, filter.switched_off);
  ASSERT_OK(live_.function_filter({.at_ns = 10, .only = {}, .except = {}}));
  ASSERT_EQ(live_.manifest.function_filters.size(), 2u);
  EXPECT_TRUE(live_.manifest.function_filters[1].switched_off.empty());
}

TEST_F(LiveManifestTest, ListsAreBounded) {
  for (size_t at = 0; at < kMaxNotes + 2; ++at) ASSERT_OK(live_.note("note"));
  EXPECT_EQ(live_.manifest.notes.size(), kMaxNotes);
  EXPECT_EQ(live_.manifest.notes_left_out, 2u);
  for (size_t at = 0; at < kMaxMarkers + 2; ++at) ASSERT_OK(live_.marker({at + 1, "m"}));
  EXPECT_EQ(live_.manifest.markers.size(), kMaxMarkers);
  EXPECT_EQ(live_.manifest.markers_left_out, 2u);
  for (size_t at = 0; at < 3 * kMaxClockSyncs; ++at) {
    ASSERT_OK(live_.clock_sync({.at_ns = at, .offset_ns = 1, .uncertainty_ns = 1}));
  }
  EXPECT_LE(live_.manifest.clock_syncs.size(), kMaxClockSyncs);
  EXPECT_EQ(live_.manifest.clock_syncs.front().at_ns, 0u) << "the first stays";
  EXPECT_EQ(live_.manifest.clock_syncs.back().at_ns, 3 * kMaxClockSyncs - 1);
}

TEST_F(LiveManifestTest, ModulesAreKnownByTheirId) {
  ModuleInfo module;
  module.module_id = 7;
  module.path = "/bin/a";
  module.build_id.assign(kMaxBuildIdBytes + 1, 1);
  EXPECT_TRUE(live_.add_modules({&module, 1}, "session").ok());
  EXPECT_TRUE(live_.is_due_before_page()) << "its functions may be in the next page";
  ASSERT_EQ(live_.manifest.modules.size(), 1u);
  EXPECT_EQ(live_.manifest.modules[0].build_id.size(), kMaxBuildIdBytes);
  live_.written(100, clock_.monotonic_ns());

  clock_.monotonic += 2 * kManifestIntervalNs;
  EXPECT_TRUE(live_.add_modules({&module, 1}, "session").ok());
  EXPECT_FALSE(live_.must_write()) << "a repeat";
  module.path = "/bin/other";
  module.unloaded_ns = 9;
  EXPECT_TRUE(live_.add_modules({&module, 1}, "session").ok());
  EXPECT_FALSE(live_.is_due_before_page());
  EXPECT_TRUE(live_.must_write());
  ASSERT_EQ(live_.manifest.modules.size(), 1u);
  EXPECT_EQ(live_.manifest.modules[0].path, "/bin/a");
  EXPECT_EQ(live_.manifest.modules[0].unloaded_ns, 9u);
}

TEST_F(LiveManifestTest, SoManyModules) {
  std::vector<ModuleInfo> modules(kMaxModules);
  for (uint32_t id = 0; id < kMaxModules; ++id) modules[id].module_id = id;
  EXPECT_TRUE(live_.add_modules(modules, "session").ok());
  ModuleInfo more;
  more.module_id = kMaxModules;
  const Status refused = live_.add_modules({&more, 1}, "session");
  EXPECT_EQ(refused.code(), Code::kLimit);
  EXPECT_EQ(refused.error().message, "session: more than 16384 modules");
  EXPECT_TRUE(live_.add_modules({&modules[5], 1}, "session").ok()) << "it is known";
}

TEST_F(LiveManifestTest, ModulesOfOneThatWasFoundAreKnown) {
  Manifest found;
  found.modules.resize(2);
  found.modules[1].module_id = 8;
  live_.adopt(found);
  ModuleInfo known;
  known.module_id = 8;
  EXPECT_TRUE(live_.add_modules({&known, 1}, "session").ok());
  EXPECT_EQ(live_.manifest.modules.size(), 2u);
}

TEST_F(LiveManifestTest, DetailWindowThatIsOpenEndsWithTheSession) {
  live_.end_detail_window(50);
  EXPECT_TRUE(live_.manifest.detail_windows.empty());
  EXPECT_TRUE(live_.detail_state({"on", 10, 0, 0, "asked"}).ok());
  live_.end_detail_window(50);
  EXPECT_EQ(live_.manifest.detail_windows[0].end_ns, 50u);
  live_.end_detail_window(60);
  EXPECT_EQ(live_.manifest.detail_windows[0].end_ns, 50u) << "it has ended";
}

TEST_F(LiveManifestTest, FailureIsSaidOnce) {
  live_.manifest.reason = "exit";
  live_.fail(Error{Code::kIo, "the disk"});
  live_.fail(Error{Code::kIo, "the disk"});
  EXPECT_EQ(live_.manifest.sealing_state, SessionState::kFailed);
  EXPECT_EQ(live_.manifest.state, SessionState::kRecording) << "it is not sealed yet";
  EXPECT_EQ(live_.manifest.reason, "exit; " + seal_reason(Error{Code::kIo, "the disk"}));
  live_.manifest.state = SessionState::kComplete;
  live_.fail(Error{Code::kIo, "another"});
  EXPECT_EQ(live_.manifest.state, SessionState::kFailed);
}

}  // namespace
}  // namespace collect::storage
