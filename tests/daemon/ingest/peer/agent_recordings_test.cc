// What becomes of a process's recordings, without its links: beginning, waiting, sealing, and what
// the agent and the peer are sent.
#include "daemon/ingest/peer/agent_recordings.h"

#include <gmock/gmock.h>

#include "daemon/ingest/clock/clock_fit.h"
#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using storage::SessionState::kRecovered;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class AgentRecordingsTest : public PeerPartsTest {
 protected:
  AgentRecordingsTest() { fs_ = &faulty_; }
  void record_and_open(uint32_t recording) {
    ASSERT_FALSE(record(recording).has_value());
    ASSERT_TRUE(loop_.run_until([this] { return recordings().opened() != nullptr; }));
  }
  void end(uint32_t recording) {
    recordings().end(end_of(recording));
    recordings().take_in(0);
    ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  }
  void open_streams(uint32_t count) {
    for (uint32_t id = 1; id <= count; ++id) {
      recordings().current()->push([id](StoredSession& session) {
        return session.writer().open_stream({id, id + 100, "thread", 1});
      });
    }
    run();
  }
  void store_events(uint32_t stream, uint32_t count) {
    recordings().current()->push([this, stream, count](StoredSession& session) {
      const std::vector<uint8_t> events = fakes::index_events(0, count);
      const Page page{fakes::index_page_header(stream, 0, count), events, {}};
      return session.store(std::span(&page, 1), unpacker_);
    });
    run();
  }
  SteadyTime in(milliseconds later) const { return std::chrono::steady_clock::now() + later; }
  AgentSnapshot agent() { return parts_->profile.shown(); }

  PageUnpacker unpacker_;
};

// ---- begin and end

TEST_F(AgentRecordingsTest, RecordingIsStoredWhileItsDataComes) {
  begin();
  EXPECT_EQ(recordings().current(), nullptr);
  record_and_open(1);
  EXPECT_THAT(heard().storing, ElementsAre(0, 1));
  EXPECT_EQ(heard().opened, 1);
  EXPECT_EQ(agent().state, AgentState::kRecording);
  EXPECT_EQ(agent().session, recordings().current()->shown.name);
  ASSERT_NE(recordings().storing(), nullptr);
  recordings().take_in(0);
  EXPECT_EQ(recordings().storing(), nullptr);
  EXPECT_NE(recordings().current(), nullptr);
  recordings().take_in(2);
  EXPECT_EQ(recordings().storing(), nullptr) << "it is another one";
  recordings().take_in(1);
  EXPECT_EQ(recordings().storing(), recordings().current());
}

TEST_F(AgentRecordingsTest, EndIsAcknowledgedWhenItIsSealed) {
  begin();
  record_and_open(1);
  wire::RecordingEnd end = end_of(1);
  end.set_lost_without_stream(4);
  end.mutable_process_end()->set_how(wire::ProcessEnd::EXITED);
  end.mutable_process_end()->set_exit_code(3);
  recordings().end(end);
  EXPECT_EQ(recordings().current(), nullptr);
  EXPECT_TRUE(recordings().is_sealing());
  EXPECT_TRUE(recordings().is_finished(1));
  EXPECT_FALSE(recordings().is_finished(2));
  recordings().ack_ended(1);
  EXPECT_THAT(ended(), IsEmpty()) << "it is not sealed yet";
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_THAT(ended(), ElementsAre(1));
  EXPECT_EQ(heard().sealed, 1);
  EXPECT_EQ(core_->live_sessions, 0u);
  EXPECT_EQ(used(principal::Resource::kSessions), 0u);
  const storage::Manifest manifest = sealed_manifest();
  EXPECT_EQ(manifest.state, storage::SessionState::kComplete);
  EXPECT_EQ(manifest.lost_without_stream, 4u);
  EXPECT_EQ(manifest.process_end.exit_code, 3);
  recordings().ack_ended(1);
  EXPECT_THAT(ended(), ElementsAre(1)) << "the agent repeats it";
}

TEST_F(AgentRecordingsTest, AnotherOneEndsTheOneBefore) {
  begin();
  record_and_open(2);
  const Verdict older = record(1);
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->reason, "recording 1 after recording 2");
  EXPECT_EQ(older->code, wire::REFUSE_PROTOCOL);
  record_and_open(3);
  EXPECT_EQ(recordings().current()->recording, 3u);
  const storage::Manifest manifest = sealed_manifest();
  EXPECT_EQ(manifest.state, kRecovered);
  EXPECT_THAT(ended(), IsEmpty()) << "no one said that it is over for good";
}

TEST_F(AgentRecordingsTest, ProcessHasSoManyRecordings) {
  options_.sessions_per_agent = 1;
  begin();
  record_and_open(1);
  end(1);
  const Verdict more = record(2);
  ASSERT_TRUE(more.has_value());
  EXPECT_EQ(more->code, wire::REFUSE_LIMIT);
  EXPECT_FALSE(more->retry);
  EXPECT_EQ(recordings().current(), nullptr);
}

TEST_F(AgentRecordingsTest, WithoutRoomNoneBegins) {
  options_.accounted_memory = kSessionMemory / 2;
  begin();
  const Verdict refused = record(1);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->code, wire::REFUSE_LIMIT);
  EXPECT_TRUE(refused->retry);
  EXPECT_FALSE(recordings().any());
  EXPECT_EQ(core_->live_sessions, 0u);
}

TEST_F(AgentRecordingsTest, GivenUpRecordingIsOverForGood) {
  begin();
  record_and_open(1);
  recordings().note("a reason");
  recordings().give_up("no one wants it");
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_THAT(ended(), ElementsAre(1));
  EXPECT_EQ(sealed()->status, "no one wants it");
  ASSERT_FALSE(sealed_manifest().notes.empty());
  EXPECT_EQ(sealed_manifest().notes[0].what, "a reason");
  recordings().give_up("again");
  recordings().note("after the end");
}

TEST_F(AgentRecordingsTest, AnswersEveryWaiterOfTheSeal) {
  begin();
  std::vector<std::string> answers;
  const auto wait = [&] {
    recordings().when_sealed([&](const Result<SessionSnapshot>& session) {
      answers.push_back(session.ok() ? session->status : session.error().message);
    });
  };
  wait();
  EXPECT_THAT(answers, ElementsAre(parts_->profile.name() + " does not record now"));
  record_and_open(1);
  wait();
  recordings().seal(kRecovered, "the reason");
  wait();  // on its way
  EXPECT_EQ(answers.size(), 1u);
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_THAT(answers, ElementsAre(testing::_, "the reason", "the reason"));
}

// ---- waiting

TEST_F(AgentRecordingsTest, AgentThatStaysAwayLosesItsSession) {
  begin();
  record_and_open(1);
  recordings().wait_for_agent();
  recordings().sweep(in(options_.resume - milliseconds{2'000}));
  EXPECT_NE(recordings().current(), nullptr);
  recordings().sweep(in(options_.resume + milliseconds{1}));
  EXPECT_EQ(recordings().current(), nullptr);
  EXPECT_EQ(sealed()->status, "its agent did not come back");
  EXPECT_FALSE(recordings().is_finished(1)) << "what it kept may come in a session of its own";
}

TEST_F(AgentRecordingsTest, SealsWhenTheEndDoesNotCome) {
  begin();
  record_and_open(1);
  ASSERT_TRUE(recordings().current()->expect_end());
  recordings().sweep(in(kStopIdleDeadline + milliseconds{1}));
  EXPECT_EQ(sealed()->status, "the agent did not end the recording on command");
  EXPECT_TRUE(recordings().is_finished(1));
}

TEST_F(AgentRecordingsTest, NextCollectorContinuesTheSession) {
  begin();
  record_and_open(1);
  const std::string directory = recordings().current()->shown.directory;
  recordings().leave();
  EXPECT_EQ(recordings().current(), nullptr);
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_EQ(core_->live_sessions, 0u);
  SessionSnapshot left;
  left.directory = directory;
  EXPECT_EQ(manifest_of(left).state, storage::SessionState::kRecording);
  EXPECT_THAT(ended(), IsEmpty());
}

TEST_F(AgentRecordingsTest, WhereThereIsNoNextCollectorItIsSealed) {
  options_.seal_at_stop = true;
  begin();
  record_and_open(1);
  recordings().leave();
  EXPECT_EQ(sealed()->status, "collector stopped");
}

// ---- what comes with another connection

TEST_F(AgentRecordingsTest, PositionsCountWhatIsQueued) {
  begin();
  record_and_open(1);
  open_streams(1);
  store_events(1, 5);
  recordings().want_positions();
  ASSERT_TRUE(loop_.run_until([this] { return !heard().positions.empty(); }));
  ASSERT_EQ(heard().positions.size(), 1u);
  ASSERT_TRUE(heard().positions[0].has_value());
  ASSERT_EQ(heard().positions[0]->size(), 1u);
  EXPECT_EQ(heard().positions[0]->at(0).index_next, 5u);
  recordings().want_positions();
  recordings().end_connection();
  run();
  EXPECT_EQ(heard().positions.size(), 1u) << "no one waits for them any more";
}

TEST_F(AgentRecordingsTest, WhereTheSessionEndsThereAreNoPositions) {
  begin();
  record_and_open(1);
  recordings().want_positions();
  recordings().give_up("meanwhile");
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  ASSERT_EQ(heard().positions.size(), 1u);
  EXPECT_FALSE(heard().positions[0].has_value());
}

TEST_F(AgentRecordingsTest, AcksNameEachStreamOnce) {
  begin();
  record_and_open(1);
  constexpr uint32_t kStreams = wire::kMaxAcksPerFrame + 1;
  for (uint32_t id = 1; id <= kStreams; ++id) {
    recordings().current()->push([id](StoredSession& session) -> Status {
      COLLECT_TRY(session.writer().open_stream({id, id + 100, "thread", 1}));
      return session.close_stream({.stream_id = id, .thread_name = "", .end_ns = 9});
    });
  }
  run();
  std::set<uint32_t> streams;
  for (const wire::Ack& ack : parts_->control.take<wire::Ack>(FrameType::kAck)) {
    EXPECT_LE(ack.positions_size(), static_cast<int>(wire::kMaxAcksPerFrame));
    for (const auto& position : ack.positions()) {
      EXPECT_TRUE(position.closed());
      streams.insert(position.stream_id());
    }
  }
  EXPECT_EQ(streams.size(), kStreams);
}

TEST_F(AgentRecordingsTest, ClockAndFilterHoldForLaterOnesToo) {
  begin();
  EXPECT_NEAR(static_cast<double>(recordings().device_now_ns()), static_cast<double>(boottime_ns()),
              60e9);
  recordings().keep(storage::ClockSync{1, 3'600'000'000'000, 3, 0, 0, {}});
  EXPECT_NEAR(static_cast<double>(recordings().device_now_ns()),
              static_cast<double>(boottime_ns()) + 3.6e12, 60e9);
  storage::FunctionFilter filter;
  filter.only = {"one"};
  recordings().keep_start_filter(filter);
  record_and_open(1);
  filter.only = {"two"};
  filter.at_ns = 5'000'000;
  recordings().keep_start_filter({});  // it records already
  recordings().keep(filter);
  end(1);
  const storage::Manifest first = sealed_manifest();
  ASSERT_EQ(first.clock_syncs.size(), 1u);
  ASSERT_EQ(first.function_filters.size(), 2u);
  EXPECT_EQ(first.function_filters[0].at_ns, 1'000'000u) << "from its beginning";
  record_and_open(2);
  storage::FunctionFilter every;
  every.at_ns = 7'000'000;
  recordings().keep(every);
  const std::string directory = recordings().current()->shown.directory;
  end(2);
  SessionSnapshot second;
  second.directory = directory;
  EXPECT_EQ(manifest_of(second).function_filters.size(), 2u);
  record_and_open(3);
  second.directory = recordings().current()->shown.directory;
  end(3);
  EXPECT_THAT(manifest_of(second).function_filters, IsEmpty());
}

// ---- what can't be stored

TEST_F(AgentRecordingsTest, CompleteOneIsRepeatedForNothing) {
  begin();
  record_and_open(1);
  end(1);
  const std::string name = agent().session;
  (void)ended();
  // A later peer of the same process, as behind a restart of it.
  storage::ResumeKey key;
  parts_ = std::make_shared<PeerParts>(*core_, loop_.io(), hello(), key);
  ASSERT_FALSE(record(1).has_value());
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_EQ(recordings().storing(), nullptr);
  EXPECT_TRUE(recordings().is_finished(1));
  EXPECT_EQ(agent().session, name);
  EXPECT_THAT(ended(), ElementsAre(1));
  EXPECT_EQ(core_->live_sessions, 0u);
}

TEST_F(AgentRecordingsTest, FailedStorageAsksTheAgentToRetry) {
  begin();
  record_and_open(1);
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  open_streams(1);
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  ASSERT_EQ(heard().not_stored.size(), 1u);
  EXPECT_EQ(heard().not_stored[0].code, wire::REFUSE_STORAGE);
  EXPECT_TRUE(heard().not_stored[0].retry);
  EXPECT_THAT(ended(), IsEmpty());
  EXPECT_FALSE(recordings().is_finished(1));
  faulty_.set_plan({});
  EXPECT_FALSE(record(1).has_value()) << "in a session of its own";
}

// Its end was read, and what came before it could not be written.
TEST_F(AgentRecordingsTest, EndWhoseDataIsLostIsNotTheEnd) {
  begin();
  record_and_open(1);
  faulty_.set_plan({.fail_at = faulty_.changes(), .lasting = true});
  recordings().current()->push(
      [](StoredSession& session) { return session.writer().open_stream({1, 101, "thread", 1}); });
  recordings().end(end_of(1));
  EXPECT_TRUE(recordings().is_finished(1));
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_FALSE(recordings().is_finished(1));
  EXPECT_EQ(heard().not_stored.size(), 1u);
  EXPECT_THAT(ended(), IsEmpty());
}

TEST_F(AgentRecordingsTest, InvalidRecordsEndTheRecordingForGood) {
  begin();
  record_and_open(1);
  recordings().current()->push(
      [](StoredSession&) -> Status { return Error{Code::kDamaged, "these are no records"}; });
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  ASSERT_EQ(heard().bad_data.size(), 1u);
  EXPECT_THAT(heard().bad_data[0], HasSubstr("these are no records"));
  EXPECT_THAT(heard().not_stored, IsEmpty());
  EXPECT_TRUE(recordings().is_finished(1));
  EXPECT_THAT(ended(), ElementsAre(1));
}

TEST_F(AgentRecordingsTest, RecordingNeedsANumberAndTheHellosVersion) {
  begin();
  EXPECT_EQ(data(FrameType::kRecordingStart, start_of(0)), "a recording is numbered from 1");
  wire::RecordingStart start = start_of(1);
  start.set_atf_version(1);
  EXPECT_THAT(data(FrameType::kRecordingStart, start), HasSubstr("ATF version"));
  EXPECT_FALSE(recordings().any());
}

TEST_F(AgentRecordingsTest, DropsRepeatedFramesOfFinishedRecordings) {
  begin();
  EXPECT_EQ(data(FrameType::kRecordingStart, start_of(1)), "");
  EXPECT_EQ(data(FrameType::kRecordingEnd, end_of(1)), "");
  ASSERT_TRUE(loop_.run_until([this] { return !recordings().any(); }));
  EXPECT_THAT(ended(), ElementsAre(1));
  EXPECT_EQ(data(FrameType::kRecordingStart, start_of(1)), "");
  EXPECT_FALSE(recordings().any());
  EXPECT_EQ(data(FrameType::kStreamOpen, stream_of(1, 1)), "");
  EXPECT_EQ(data(FrameType::kModules, modules_of({"/bin/a"})), "");
  EXPECT_EQ(data(FrameType::kRecordingEnd, end_of(1)), "");
  EXPECT_THAT(ended(), ElementsAre(1, 1)) << "reported at its beginning, and at its end";
}

}  // namespace
}  // namespace collect::ingest
