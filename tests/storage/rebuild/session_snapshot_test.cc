// A sealed copy of a session that continues: what was written at that moment and nothing more,
// whole or not at all on any disk fault.
#include "storage/rebuild/session_snapshot.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

using ::testing::HasSubstr;

const SnapshotMoment kWhole{true, 1'000'000, "a snapshot"};

Status goes_on(uint64_t, uint64_t) {
  return {};
}

class SessionSnapshotTest : public ::testing::Test {
 protected:
  SessionSnapshotTest() {
    auto created = Session::create(fs, options(), test_identity());
    EXPECT_OK(created);
    writer = std::move(*created);
    EXPECT_OK(writer->open_stream(stream.info()));
    from = *parse_session_path(root.path(), writer->name());
  }

  SessionOptions options() {
    SessionOptions options;
    options.root = root.path();
    options.clock = &clock;
    options.keep_free_bytes = 0;
    options.keep_free_files = 0;
    return options;
  }
  // Records from `index` and `detail` on, as far as there are.
  void store(uint64_t index, uint64_t detail) {
    const std::vector<Page> pages = {stream.index_page(index, stream.events() - index),
                                     stream.detail_page(detail, stream.details() - detail)};
    ASSERT_OK(writer->append_pages(pages));
  }
  SessionCut cut() {
    auto cut = writer->cut();
    EXPECT_OK(cut);
    return cut.ok() ? std::move(*cut) : SessionCut{};
  }
  Result<MadeSession> snapshot(const SessionCut& cut, const SnapshotMoment& moment = kWhole,
                               const MakingProgress& progress = goes_on) {
    return snapshot_session(fs, options(), from, cut, moment, progress);
  }
  std::vector<std::string> sessions() {
    std::vector<std::string> names;
    const auto session_paths = list_sessions(fs, root.path());
    EXPECT_OK(session_paths);
    for (const SessionPath& session_path : *session_paths) names.push_back(session_path.name);
    return names;
  }

  TemporaryDirectory root;
  FakeClock clock;
  PosixFs fs;
  FakeStream stream{atf::Version::kV2, 7, 100};
  std::unique_ptr<Session> writer;
  SessionPath from;
};

TEST_F(SessionSnapshotTest, HoldsTheMomentAndTheSessionContinues) {
  stream.add_many(50, FakeStream::Detail::kLinked);
  store(0, 0);
  const SessionCut then = cut();
  const uint64_t events = stream.events(), details = stream.details();
  stream.add_many(30, FakeStream::Detail::kLinked);
  store(events, details);

  const auto made = snapshot(then);
  ASSERT_OK(made);
  EXPECT_EQ(made->session_path.name, from.session + "_snap1/pid_4711");
  EXPECT_EQ(made->manifest.state, SessionState::kComplete);
  EXPECT_EQ(made->manifest.reason, "a snapshot");
  EXPECT_EQ(made->manifest.totals.events, events);
  EXPECT_EQ(made->manifest.totals.detail_records, details);
  EXPECT_TRUE(health_of(made->manifest).losses_known);
  expect_reference_ok(made->session_path.directory);
  const std::vector<uint8_t> section =
      section_of(made->session_path.directory + "/thread_0/index.atf");
  ASSERT_EQ(section.size(), events * atf::kEventBytes);
  EXPECT_TRUE(std::equal(section.begin(), section.end(), stream.index_bytes().begin()));

  const auto second = snapshot(cut());
  ASSERT_OK(second);
  EXPECT_EQ(second->session_path.name, from.session + "_snap2/pid_4711");
  EXPECT_EQ(second->manifest.totals.events, events + 30);
  ASSERT_OK(writer->close_stream(stream.end()));
  ASSERT_OK(writer->seal(SessionState::kComplete, "done"));
  expect_reference_ok(from.directory);
  EXPECT_EQ(sessions(), (std::vector<std::string>{from.name, made->session_path.name,
                                                  second->session_path.name}));
}

// Copying takes its time: what is recorded meanwhile is not in the copy, and neither is that time.
TEST_F(SessionSnapshotTest, EndsAtTheMomentOfTheSnapshot) {
  stream.add_many(50, FakeStream::Detail::kNone);
  store(0, 0);
  SnapshotMoment moment = kWhole;
  moment.unix_ns = clock.unix_ns() + 7'840'000'000;
  const SessionCut then = cut();
  clock.unix += 40'000'000'000;
  const auto made = snapshot(then, moment);
  ASSERT_OK(made);
  EXPECT_EQ(made->manifest.finished_unix_ns, moment.unix_ns);
  EXPECT_LT(made->manifest.created_unix_ns, moment.unix_ns);
}

// The agent's numbers are not places in the files there: sealing has to make the links again.
TEST_F(SessionSnapshotTest, LinksHoldAcrossWhatWasLost) {
  stream.add_many(40, FakeStream::Detail::kLinked);
  const std::vector<Page> pages = {stream.index_page(0, 10), stream.detail_page(0, 10),
                                   stream.index_page(20, 20), stream.detail_page(20, 20)};
  ASSERT_OK(writer->append_pages(pages));
  const auto made = snapshot(cut());
  ASSERT_OK(made);
  EXPECT_EQ(made->manifest.totals.events, 30u);
  EXPECT_EQ(made->manifest.totals.lost_events, 10u);
  EXPECT_EQ(made->manifest.totals.lost_detail_records, 10u);
  ASSERT_EQ(made->manifest.gaps.size(), 2u);
  EXPECT_EQ(made->manifest.gaps[0].before_seq, 10u);
  expect_reference_ok(made->session_path.directory);
}

TEST_F(SessionSnapshotTest, WithoutTheAgentsWordItIsRecovered) {
  stream.add_many(5);
  store(0, 0);
  const auto made = snapshot(cut(), {false, 0, "its agent is away"});
  ASSERT_OK(made);
  EXPECT_EQ(made->manifest.state, SessionState::kRecovered);
  EXPECT_FALSE(health_of(made->manifest).losses_known);
  EXPECT_THAT(health_of(made->manifest).missing, HasSubstr("its agent is away"));
  EXPECT_EQ(made->manifest.totals.events, 5u);
}

TEST_F(SessionSnapshotTest, FailsWhenTheSessionIsSealedMeanwhile) {
  stream.add_many(20);
  const std::vector<Page> pages = {stream.index_page(0, 5), stream.index_page(10, 10)};
  ASSERT_OK(writer->append_pages(pages));
  const SessionCut then = cut();
  const auto made = snapshot(then, kWhole, [&](uint64_t done, uint64_t) -> Status {
    if (done != 0 && !writer->sealed()) EXPECT_OK(writer->seal(SessionState::kRecovered, "gone"));
    return {};
  });
  EXPECT_EQ(made.code(), Code::kUnsupported);
  EXPECT_THAT(made.error().message, HasSubstr("ended while it was copied"));
  EXPECT_EQ(sessions(), std::vector<std::string>{from.name});
  EXPECT_FALSE(fs.exists(root.path() + "/" + kConvertingDirectory));
  EXPECT_EQ(snapshot(then).code(), Code::kUnsupported);
}

TEST_F(SessionSnapshotTest, CancellingLeavesNoFiles) {
  stream.add_many(20);
  store(0, 0);
  const auto ended = [](uint64_t done, uint64_t) {
    return done == 0 ? Status() : Status(Error{Code::kCancelled, "enough"});
  };
  EXPECT_EQ(snapshot(cut(), kWhole, ended).code(), Code::kCancelled);
  EXPECT_EQ(sessions(), std::vector<std::string>{from.name});
  EXPECT_FALSE(fs.exists(root.path() + "/" + kConvertingDirectory));
}

TEST_F(SessionSnapshotTest, DiskMayFailAtAnyChange) {
  stream.add_many(20, FakeStream::Detail::kLinked);
  store(0, 0);
  const SessionCut then = cut();
  bool done = false;
  uint64_t k = 0;
  for (; !done; ++k) {
    ASSERT_LT(k, 500u);
    SCOPED_TRACE(k);
    FaultFs breaking({.fail_at = k, .short_write = true});
    const auto made = snapshot_session(breaking, options(), from, then, kWhole, goes_on);
    done = !breaking.failed();
    ASSERT_OK(remove_unfinished_sessions(fs, root.path()));
    const auto session_paths = list_sessions(fs, root.path());
    ASSERT_OK(session_paths);
    for (const SessionPath& session_path : *session_paths) {
      if (session_path.name == from.name) continue;
      expect_reference_ok(session_path.directory);
      ASSERT_OK(remove_session(fs, session_path));
    }
  }
  EXPECT_GT(k, 10u);
  stream.add_many(10, FakeStream::Detail::kLinked);
  store(20, 20);
  ASSERT_OK(writer->close_stream(stream.end()));
  ASSERT_OK(writer->seal(SessionState::kComplete, "done"));
  expect_reference_ok(from.directory);
}

TEST_F(SessionSnapshotTest, RefusesWhatHasNoRoomOrAnotherFormat) {
  stream.add_many(20);
  store(0, 0);
  SessionOptions small = options();
  small.max_session_bytes = 100;
  EXPECT_EQ(snapshot_session(fs, small, from, cut(), kWhole, goes_on).code(), Code::kLimit);
  SessionCut passthrough = cut();
  passthrough.manifest.passthrough_streams.push_back({});
  EXPECT_EQ(snapshot(passthrough).code(), Code::kUnsupported);
}

}  // namespace
}  // namespace collect::storage::test
