// What the daemon's own machine lacks is waited for; what one principal has too much of is refused
// to it, and to no one else.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include "storage/session/live_manifest.h"
#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/machine/other_user.h"
#include "tests/storage/limited_fs.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FrameSocket;
using fakes::index_events;
using testing::HasSubstr;

fakes::FakeProcess process_of(uint8_t id) {
  fakes::FakeProcess process;
  process.id_byte = id;
  process.pid = id;
  return process;
}

class BudgetTest : public IngestTest {
 protected:
  BudgetTest() { fs_ = &limited_; }
  ~BudgetTest() override { ingest_.reset(); }

  storage::test::LimitedFs limited_;
};

// Seen: EMFILE was taken for bad data, and the agent was refused for good.
TEST_F(BudgetTest, RecordingContinuesOnceThereAreDescriptors) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  limited_.max_open = 0;
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(eventually([this] { return limited_.refused > 2; }));
  limited_.max_open = SIZE_MAX;
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 1000));
  ASSERT_TRUE(agent.wait_stored(1, 1000));
  limited_.max_open = 0;
  for (uint32_t stream = 2; stream <= 20; ++stream) {
    ASSERT_TRUE(agent.open_stream(stream, stream));
    ASSERT_TRUE(agent.send_events(stream, 0, 1000));
    ASSERT_TRUE(agent.close_stream(stream, 1000));
  }
  ASSERT_TRUE(agent.close_stream(1, 1000));
  ASSERT_TRUE(agent.end_recording());
  const uint64_t refused = limited_.refused;
  ASSERT_TRUE(eventually([&] { return limited_.refused > refused + 2; }));
  EXPECT_GT(ingest_->counters().writes_held, 0u);
  EXPECT_FALSE(agent.refused().has_value());
  limited_.max_open = SIZE_MAX;
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 20'000u);
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_FALSE(agent.refused().has_value());
}

TEST_F(BudgetTest, SealWaitsForDescriptors) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.send_events(1, 0, 1000));
  ASSERT_TRUE(agent.wait_stored(1, 1000));
  agent.set_recording(1, true);
  agent.disconnect();
  ASSERT_TRUE(eventually([this] { return limited_.open_now == 0; }));
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  ASSERT_TRUE(agent.close_stream(1, 1000));
  limited_.max_open = 0;
  ASSERT_TRUE(agent.end_recording());
  const uint64_t refused = limited_.refused;
  EXPECT_TRUE(eventually([&] { return limited_.refused > refused; }));
  limited_.max_open = SIZE_MAX;
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 1000u);
}

// Seen: sessions of absent agents kept 256 descriptors each.
TEST_F(BudgetTest, FilesOfAbsentAgentsAreClosed) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  agent.set_recording(1, true);
  for (uint32_t stream = 1; stream <= 50; ++stream) {
    ASSERT_TRUE(agent.open_stream(stream, stream));
    ASSERT_TRUE(agent.send_events(stream, 0, 100));
  }
  ASSERT_TRUE(agent.wait_stored(50, 100));
  EXPECT_GE(limited_.open_now, 50u);
  agent.disconnect();
  EXPECT_TRUE(eventually([this] { return limited_.open_now == 0; })) << limited_.open_now;
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(agent.welcome().resumed());
  ASSERT_TRUE(agent.start_recording(1));
  for (uint32_t stream = 1; stream <= 50; ++stream) {
    ASSERT_TRUE(agent.open_stream(stream, stream));
    ASSERT_TRUE(agent.send_events(stream, 100, 100));
    ASSERT_TRUE(agent.close_stream(stream, 200));
  }
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, 10'000u);
  EXPECT_EQ(session->totals.lost_events, 0u);
}

TEST_F(BudgetTest, SessionsBeyondTheBudgetAreRefusedForNow) {
  options_.max_sessions = kLeastSessions;
  start();
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (uint8_t id = 1; id <= kLeastSessions; ++id) {
    agents.push_back(std::make_unique<FakeAgent>(process_of(id)));
    ASSERT_TRUE(agents.back()->connect(address()));
    ASSERT_TRUE(agents.back()->start_recording(1));
    ASSERT_TRUE(agents.back()->open_stream(1, 1));
    ASSERT_TRUE(agents.back()->send_events(1, 0, 10));
    ASSERT_TRUE(agents.back()->wait_stored(1, 10));
  }
  FakeAgent late(process_of(99));
  ASSERT_TRUE(late.connect(address()));
  ASSERT_TRUE(late.start_recording(1));
  ASSERT_TRUE(late.wait_refused());
  EXPECT_EQ(late.refused()->code(), wire::REFUSE_LIMIT);
  EXPECT_TRUE(late.refused()->retry());
  EXPECT_THAT(late.refused()->reason(), HasSubstr("too many unsealed sessions: uid "));
  ASSERT_TRUE(agents[0]->close_stream(1, 10));
  ASSERT_TRUE(agents[0]->end_recording());
  ASSERT_TRUE(agents[0]->wait_recording_ended(1));
  EXPECT_TRUE(eventually([&] {  // there is room again
    return late.connect(address()) && late.start_recording(1) && late.open_stream(1, 1) &&
           late.send_events(1, 0, 10) && late.wait_stored(1, 10);
  }));
}

TEST_F(BudgetTest, RefusesThreadsBeyondTheFileBudgetForNow) {
  options_.unsealed_files = 2 * kLeastFiles;
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  for (uint32_t stream = 1; stream <= 200; ++stream) {
    if (!agent.open_stream(stream, stream)) break;
  }
  ASSERT_TRUE(agent.wait_refused());
  EXPECT_EQ(agent.refused()->code(), wire::REFUSE_LIMIT);
  EXPECT_TRUE(agent.refused()->retry());
  EXPECT_THAT(agent.refused()->reason(), HasSubstr("files of unsealed sessions"));
}

// Opening threads faster than the rate is no fault: reading waits, and everything is stored.
TEST_F(BudgetTest, ThreadsThatStartTooFastWait) {
  options_.stream_opens_at_once = 100;
  options_.stream_opens_per_second = 50;   // slower than any machine stores them
  options_.heartbeat = milliseconds{100};  // the pace at which what waits is looked at
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  constexpr uint32_t kThreads = 200;
  constexpr uint32_t kMostThreads = 1000;
  uint32_t threads = 0;
  while (threads < kThreads || (ingest_->counters().reads_held == 0 && threads < kMostThreads)) {
    do {
      ++threads;
      ASSERT_TRUE(agent.open_stream(threads, threads));
      ASSERT_TRUE(agent.send_events(threads, 0, 2));
      ASSERT_TRUE(agent.close_stream(threads, 2));
    } while (threads % 20 != 0);
    ASSERT_TRUE(agent.wait_stored(threads, 2));  // what is read at once is not held
  }
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  EXPECT_GT(ingest_->counters().reads_held, 0u);
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.threads, threads);
  EXPECT_EQ(session->totals.events, 2 * threads);
}

// Seen: 440 KB of encoded pages became 210 MB. They are decoded where they are written, and what
// can't be written is not read.
TEST_F(BudgetTest, EncodedPagesDoNotQueue) {
  start();
  fakes::FakeProcess process;
  process.features = wire::kFeatureColumns;
  FakeAgent agent(process);
  ASSERT_TRUE(agent.connect(address()));
  limited_.max_open = 0;  // nothing can be stored
  ASSERT_TRUE(agent.start_recording(1));
  ASSERT_TRUE(agent.open_stream(1, 11));
  constexpr uint32_t kEvents = 2'000;
  constexpr uint32_t kPages = 512;  // 32 MB as records
  uint64_t sent_bytes = 0;
  for (uint32_t page = 0; page < kPages; ++page) {
    const auto frame = fakes::encoded_page_frame_bytes(
        fakes::index_page_header(1, uint64_t{page} * kEvents, kEvents),
        index_events(uint64_t{page} * kEvents, kEvents));
    sent_bytes += frame.size();
    ASSERT_TRUE(agent.data().send_bytes(frame));
  }
  ASSERT_LT(sent_bytes, uint64_t{kPages} * kEvents * 32 / 8);
  EXPECT_TRUE(eventually([this] { return ingest_->counters().writes_held > 0; }));
  EXPECT_LE(ingest_->counters().bytes_received, kReadTurnBytes);
  limited_.max_open = SIZE_MAX;
  ASSERT_TRUE(agent.close_stream(1, kPages * kEvents));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, uint64_t{kPages} * kEvents);
}

// Seen: a manifest for each of a few small frames made a thousand times their bytes.
TEST_F(BudgetTest, ManifestsOfManyChangesArePaced) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  constexpr uint32_t kThreads = 800;
  for (uint32_t stream = 1; stream <= kThreads; ++stream) {
    ASSERT_TRUE(agent.open_stream(stream, stream));
  }
  ASSERT_TRUE(agent.send_events(kThreads, 0, 10));
  ASSERT_TRUE(agent.wait_stored(kThreads, 10));
  const auto began = std::chrono::steady_clock::now();
  const uint64_t before = limited_.manifest_bytes;
  for (uint32_t stream = 1; stream < kThreads; ++stream) {
    ASSERT_TRUE(agent.close_stream(stream, 0));
    ASSERT_TRUE(agent.wait_closed(stream));
    if (std::chrono::steady_clock::now() - began > std::chrono::seconds(6)) break;
  }
  const auto took = std::chrono::steady_clock::now() - began;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(took).count() + 1;
  const uint64_t one = limited_.manifest_bytes / limited_.manifests;
  EXPECT_LT(limited_.manifest_bytes - before,
            storage::kManifestBurstBytes +
                static_cast<uint64_t>(seconds) * storage::kManifestBytesPerSecond + 8 * one);
}

// A session that needs nothing itself closes files when others need the descriptors.
TEST_F(BudgetTest, IdleSessionClosesFilesThatOthersNeed) {
  options_.descriptors = 240;
  start();
  FakeAgent idle(process_of(1));
  ASSERT_TRUE(idle.connect(address()));
  ASSERT_TRUE(idle.start_recording(1));
  constexpr uint32_t kThreads = 60;
  for (uint32_t stream = 1; stream <= kThreads; ++stream) {
    ASSERT_TRUE(idle.open_stream(stream, stream));
    ASSERT_TRUE(idle.send_events(stream, 0, 10));
  }
  ASSERT_TRUE(idle.wait_stored(kThreads, 10));
  EXPECT_GE(limited_.open_now, kThreads);
  // By then nothing of it is left to be made true, so that only the others' need can move it. Were
  // it not so, the test would still pass.
  std::this_thread::sleep_for(3 * kSettleInterval);
  EXPECT_GE(limited_.open_now, kThreads);
  std::vector<std::unique_ptr<FakeAgent>> others;
  for (uint8_t id = 2; id <= 4; ++id) {
    others.push_back(std::make_unique<FakeAgent>(process_of(id)));
    ASSERT_TRUE(others.back()->connect(address()));
    ASSERT_TRUE(others.back()->start_recording(1));
    ASSERT_TRUE(others.back()->open_stream(1, 1));
    ASSERT_TRUE(others.back()->send_events(1, 0, 10));
    ASSERT_TRUE(others.back()->wait_stored(1, 10));
  }
  // Three quarters of 240 for four sessions, and a few of each of the others.
  EXPECT_TRUE(eventually([this] { return limited_.open_now <= 45 + 3 * 3; })) << limited_.open_now;
  for (uint32_t stream = 1; stream <= kThreads; ++stream) {
    ASSERT_TRUE(idle.send_events(stream, 10, 10));
    ASSERT_TRUE(idle.close_stream(stream, 20));
  }
  ASSERT_TRUE(idle.end_recording());
  ASSERT_TRUE(idle.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.events, kThreads * 20u);
}

// Pages behind a manifest that is paced wait for it; none is lost, and the end does not overtake
// them.
TEST_F(BudgetTest, StoresAllPagesBehindAPacedManifest) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  ASSERT_TRUE(agent.start_recording(1));
  constexpr uint32_t kFrames = 68;
  for (uint32_t id = 0; id < kFrames; ++id) {
    wire::Modules modules;
    for (uint32_t i = 0; i < wire::kMaxModulesPerFrame; ++i) {
      wire::Module& module = *modules.add_modules();
      module.set_module_id(id * wire::kMaxModulesPerFrame + i);
      module.set_path("/" + std::string(400, 'x'));
    }
    ASSERT_TRUE(agent.data().send(wire::FrameType::kModules, modules));
    ASSERT_TRUE(id != 0 || agent.open_stream(1, 11));
    ASSERT_TRUE(agent.send_events(1, id * 10, 10));  // waits for a manifest that names them
    ASSERT_TRUE(id + 8 >= kFrames || agent.wait_stored(1, id * 10 + 10));
  }
  ASSERT_TRUE(agent.close_stream(1, kFrames * 10));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto session = reported_.session_in(SessionState::kComplete);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->totals.lost_events, 0u);
  EXPECT_TRUE(stored_events(*session, 0, kFrames * 10) == index_events(0, kFrames * 10));
  EXPECT_GT(limited_.manifest_bytes, storage::kManifestBurstBytes) << "else nothing was paced";
}

// Seen: the newest manifests were read, on a thread that writes, whenever a recording began.
TEST_F(BudgetTest, CompleteRecordingIsFoundWithoutReadingManifests) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  for (uint32_t recording = 1; recording <= 20; ++recording) {
    record_all(agent, recording, recording, 10);
  }
  agent.disconnect();
  stop();
  start();  // lists them
  ASSERT_TRUE(eventually([this] { return limited_.manifest_reads >= 20; }));
  FakeAgent again;
  ASSERT_TRUE(again.connect(address()));
  ASSERT_TRUE(again.start_recording(20));  // it did not hear that it is complete
  ASSERT_TRUE(again.wait_recording_ended(20));
  const uint64_t reads = limited_.manifest_reads;
  record_all(again, 21, 1, 10);
  EXPECT_EQ(limited_.manifest_reads, reads);
  EXPECT_EQ(reported_.session_count(), 21u);
}

// Seen: idle pairs took every place, and no one else got in.
TEST_F(BudgetTest, IdleConnectionsOfOneUserLeaveRoomForAnother) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  options_.listen = "unix:" + root_ + ".socket";
  options_.local_access = *principal::LocalAccess::parse("any");
  options_.max_connections = 64;
  start();
  const std::string path = options_.listen.substr(5);
  ASSERT_EQ(::chmod(path.c_str(), 0777), 0);
  std::vector<std::unique_ptr<FakeAgent>> idle;
  std::optional<wire::Refuse> refused;
  fakes::on_thread_of_other_user([&] {
    for (uint8_t id = 1; id <= 100 && !refused; ++id) {
      idle.push_back(std::make_unique<FakeAgent>(process_of(id)));
      if (!idle.back()->connect(address())) refused = idle.back()->refused();
    }
  });
  ASSERT_TRUE(refused.has_value());
  EXPECT_TRUE(refused->retry());
  EXPECT_THAT(refused->reason(), HasSubstr("connections: uid 65534 has"));
  EXPECT_THAT(refused->reason(), HasSubstr("max_connections"));
  FakeAgent innocent(process_of(200));
  ASSERT_TRUE(innocent.connect(address()));
  record_all(innocent, 1, 1, 1000);
}

}  // namespace
}  // namespace collect::ingest
