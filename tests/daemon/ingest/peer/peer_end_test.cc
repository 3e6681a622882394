// How a process's links end, and what becomes of its session then: each end with its reason, and
// the end of the collector itself.
#include <gmock/gmock.h>

#include <future>

#include "storage/manifest/manifest.h"
#include "tests/daemon/ingest/peer/peer_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class PeerEndTest : public PeerTest {
 protected:
  ~PeerEndTest() override { let_go(); }

  std::vector<std::string> notes_of(const SessionSnapshot& session) {
    const auto manifest = storage::read_manifest(posix_, session.directory);
    EXPECT_TRUE(manifest.ok());
    std::vector<std::string> notes;
    if (!manifest.ok()) return notes;
    for (const storage::Note& note : manifest->notes) notes.push_back(note.what);
    return notes;
  }
  void record() {
    connect();
    start_recording();
    ASSERT_TRUE(session_in(SessionState::kActive).has_value());
    said_recording_ = 1;
  }
  // The sealing thread stops until it is let go.
  void hold_seals() {
    core_->seal_threads.add({}, [this] { go_on_.get_future().wait(); });
    is_held_ = true;
  }
  void let_go() {
    if (std::exchange(is_held_, false)) go_on_.set_value();
  }
  bool has_ended(FrameSocket& socket) { return socket.ends(milliseconds{0}); }
  std::optional<wire::Bye> bye() {
    const auto frame = next(control_, FrameType::kBye);
    return frame ? std::optional(frame->parsed<wire::Bye>()) : std::nullopt;
  }

  std::promise<void> go_on_;
  bool is_held_ = false;
};

// ---- links

TEST_F(PeerEndTest, ManifestNotesLinkEvents) {
  begin();
  record();
  peer_->drop_links("the cable");
  EXPECT_EQ(shown().status, "the cable");
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
  ASSERT_TRUE(session_in(SessionState::kInterrupted).has_value());
  EXPECT_EQ(session_in(SessionState::kInterrupted)->status, "its agent is away");
  connect();
  EXPECT_EQ(shown().state, AgentState::kRecording);
  EXPECT_EQ(session_in(SessionState::kActive)->status, "");
  start_recording();
  wire::StreamClose close;
  close.set_stream_id(5);
  say(data_, FrameType::kStreamClose, close);
  connect();
  start_recording();
  end_recording();
  const auto sealed = session_in(SessionState::kComplete);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_TRUE(next(data_, FrameType::kWelcome)->parsed<wire::Welcome>().resumed());
  EXPECT_FALSE(next(data_, FrameType::kWelcome).has_value()) << "once for a connection";
  EXPECT_THAT(notes_of(*sealed),
              ElementsAre("the link ended: the cable", "the agent came back from peer",
                          "the connection was refused: close of stream 5, which is not open",
                          "the link ended: close of stream 5, which is not open",
                          "the agent came back from peer"));
}

TEST_F(PeerEndTest, ReadsDataToItsEndAfterControlEnds) {
  begin();
  record();
  control_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return !peer_->connected(); }));
  EXPECT_EQ(shown().state, AgentState::kRecording) << "it may have sent more";
  open_stream(1);
  send_events(1, 0, 10);
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return shown().state == AgentState::kDisconnected; }));
  EXPECT_EQ(shown().status, "control link: closed by the peer");
  EXPECT_TRUE(shows([](const auto& one) { return one.totals.events == 10; }));
}

TEST_F(PeerEndTest, WhereDataEndsFirstBothAreOver) {
  begin();
  record();
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return shown().state == AgentState::kDisconnected; }));
  EXPECT_EQ(shown().status, "data link: closed by the peer");
  EXPECT_TRUE(has_ended(control_));
}

// Its Bye may come behind the end of data, when nothing is recorded any more.
TEST_F(PeerEndTest, ByeIsWaitedForWhereNothingIsRecorded) {
  begin();
  connect();
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return !peer_->connected(); }));
  EXPECT_EQ(shown().state, AgentState::kConnected);
  EXPECT_TRUE(sweep(milliseconds{0}));
  EXPECT_FALSE(has_ended(control_));
  sweep(kFarewellDeadline + kLate);
  EXPECT_TRUE(has_ended(control_));
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
  EXPECT_EQ(shown().status, "data link: closed by the peer");

  connect();
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return !peer_->connected(); }));
  wire::Bye bye;
  bye.set_reason("over");
  say(control_, FrameType::kBye, bye);
  EXPECT_EQ(shown().state, AgentState::kGone);
  EXPECT_EQ(shown().status, "the agent said goodbye: over");
}

TEST_F(PeerEndTest, DataThatNeverEndsIsNotReadForEver) {
  begin();
  record();
  control_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return !peer_->connected(); }));
  sweep(kPairDeadline - kEarly);
  EXPECT_FALSE(has_ended(data_));
  sweep(kPairDeadline + kLate);
  EXPECT_TRUE(has_ended(data_));
  EXPECT_EQ(shown().status, "control link: closed by the peer");
}

TEST_F(PeerEndTest, ControlAloneIsNotWaitedForEither) {
  begin();
  connect();
  peer_->drop_links("the cable");
  data_ = adopt(wire::CHANNEL_DATA);
  sweep(kPairDeadline + kLate);
  EXPECT_TRUE(has_ended(data_));
  EXPECT_EQ(shown().status, "no control channel connected");
}

TEST_F(PeerEndTest, ByeThatWillComeBackLeavesTheSessionOpen) {
  begin();
  record();
  wire::Bye bye;
  bye.set_reason("for a moment");
  bye.set_will_return(true);
  say(control_, FrameType::kBye, bye);
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return shown().state == AgentState::kDisconnected; }));
  EXPECT_EQ(shown().status, "the agent said goodbye: for a moment");
  ASSERT_TRUE(session_in(SessionState::kInterrupted).has_value());
  sweep(options_.resume - kEarly);
  run();
  EXPECT_FALSE(
      reported_.was_shown([](const auto& one) { return one.state == SessionState::kSealing; }));
  sweep(options_.resume + kLate);
  const auto sealed = session_in(SessionState::kRecovered);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(sealed->status, "its agent did not come back");
  EXPECT_GE(sealed->end_time, sealed->start_time);
}

TEST_F(PeerEndTest, UnfinishedFrameEndsTheConnection) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  const auto whole = fakes::frame_bytes(FrameType::kRecordingStart, wire::RecordingStart());
  ASSERT_TRUE(data_.send_bytes(Bytes(whole).first(10)));
  run();
  sweep(kFrameStall - milliseconds{10'000});
  EXPECT_TRUE(peer_->connected());
  sweep(kFrameStall + kLate);
  EXPECT_FALSE(peer_->connected());
  EXPECT_EQ(shown().status, "a frame on data came to a stop half-way");
}

TEST_F(PeerEndTest, BytesThatAreNoFrameAreRefusedOnBoth) {
  begin();
  connect();
  const std::vector<uint8_t> junk(64, 'x');
  ASSERT_TRUE(control_.send_bytes(junk));
  const auto refuse = wait_for(control_, FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_PROTOCOL);
  EXPECT_THAT(refuse->parsed<wire::Refuse>().reason(), HasSubstr("magic"));
  EXPECT_TRUE(next(data_, FrameType::kRefuse).has_value());
  EXPECT_EQ(core_->counters.connections_refused, 1u);
  EXPECT_EQ(core_->counters.pages_bad_checksum, 0u);
}

TEST_F(PeerEndTest, StoppingRecordingEndsWithItsLink) {
  begin();
  record();
  std::optional<Result<SessionSnapshot>> stopped;
  peer_->stop_recording([&](auto result) { stopped.emplace(std::move(result)); });
  peer_->drop_links("the cable");
  ASSERT_TRUE(loop_.run_until([&] { return stopped.has_value(); }));
  ASSERT_TRUE(stopped->ok());
  EXPECT_EQ((*stopped)->state, SessionState::kRecovered);
  EXPECT_EQ((*stopped)->status, "stopped while its agent was disconnected: the cable");
  // It continues there, so the command is sent again.
  said_recording_ = 1;
  connect();
  bool was_stopped = false;
  while (const auto frame = next(control_, FrameType::kCommand)) {
    was_stopped |= frame->parsed<wire::Command>().has_stop_recording();
  }
  EXPECT_TRUE(was_stopped);
  start_recording();
  EXPECT_EQ(wait_for(control_, FrameType::kAck)->parsed<wire::Ack>().recording_ended(), 1u);
  EXPECT_EQ(reported_.session_count(), 1u);
}

// One that still records is as long stopped as it sends nothing.
TEST_F(PeerEndTest, IncomingDataKeepsAStoppedRecordingOpen) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  record();
  open_stream(1);
  peer_->stop_recording([](const auto&) {});
  const auto commanded = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() <= commanded + 2 * kLate) std::this_thread::yield();
  send_events(1, 0, 10);
  peer_->sweep(commanded + kStopIdleDeadline + kLate, true);
  EXPECT_FALSE(
      reported_.was_shown([](const auto& one) { return one.state == SessionState::kSealing; }));
  sweep(kStopIdleDeadline + kLate);
  EXPECT_TRUE(session_in(SessionState::kSealing).has_value());
}

// ---- detached

TEST_F(PeerEndTest, CounterWithoutANameIsRefused) {
  begin();
  connect();
  wire::Counters counters;
  counters.add_counters()->set_value(1);
  say(control_, FrameType::kCounters, counters);
  const auto refuse = wait_for(control_, FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_PROTOCOL);
  EXPECT_THAT(refuse->parsed<wire::Refuse>().reason(), HasSubstr("a counter's name is empty"));
}

TEST_F(PeerEndTest, DetachingStopsTheRecordingAndRefusesTheAgent) {
  begin();
  record();
  std::optional<Result<AgentSnapshot>> detached;
  peer_->detach([&](auto result) { detached.emplace(std::move(result)); });
  EXPECT_FALSE(detached.has_value()) << "its recording is ended first";
  const auto command = next(control_, FrameType::kCommand);
  ASSERT_TRUE(command.has_value());
  EXPECT_TRUE(command->parsed<wire::Command>().has_stop_recording());
  end_recording();
  ASSERT_TRUE(loop_.run_until([&] { return detached.has_value(); }));
  ASSERT_TRUE(detached->ok());
  EXPECT_EQ((*detached)->state, AgentState::kGone);
  EXPECT_EQ((*detached)->status, "detached by command");
  ASSERT_TRUE(session_in(SessionState::kComplete).has_value());
  const auto refuse = next(control_, FrameType::kRefuse);
  ASSERT_TRUE(refuse.has_value());
  EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_DETACHED);
  EXPECT_FALSE(refuse->parsed<wire::Refuse>().retry());
  EXPECT_TRUE(core_->detached.holds(peer_->agent().process_id));
  EXPECT_FALSE(sweep(milliseconds{0})) << "no one waits for it";
  // Attached again it is waited for like any other.
  said_recording_ = 0;
  connect();
  peer_->drop_links("the cable");
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
}

TEST_F(PeerEndTest, DetachingAnAbsentAgentEndsItAtOnce) {
  begin();
  record();
  peer_->drop_links("the cable");
  std::optional<Result<AgentSnapshot>> detached;
  peer_->detach([&](auto result) { detached.emplace(std::move(result)); });
  ASSERT_TRUE(detached.has_value());
  EXPECT_EQ((*detached)->state, AgentState::kGone);
  const auto sealed = session_in(SessionState::kRecovered);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(sealed->status, "detached while its agent was disconnected");
  // What it recorded is over for good.
  connect();
  start_recording();
  EXPECT_EQ(wait_for(control_, FrameType::kAck)->parsed<wire::Ack>().recording_ended(), 1u);
}

// ---- the collector stops

TEST_F(PeerEndTest, SendsByeToTheAgentWhenTheCollectorStops) {
  begin();
  connect();
  peer_->shut_down();
  const auto said = bye();
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->reason(), "the collector stops");
  EXPECT_TRUE(said->will_return());
  EXPECT_TRUE(has_ended(control_));
  EXPECT_FALSE(has_ended(data_)) << "what it has sent is read first";
  EXPECT_TRUE(sweep(milliseconds{0}));
  EXPECT_FALSE(has_ended(data_));
  sweep(kFarewellDeadline + kLate);
  EXPECT_TRUE(has_ended(data_));
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
  EXPECT_EQ(shown().status, "the collector stops");
}

TEST_F(PeerEndTest, SendsByeToHalfAPair) {
  options_.seal_at_stop = true;
  begin();
  control_ = adopt(wire::CHANNEL_CONTROL, true);
  peer_->shut_down();
  const auto said = bye();
  ASSERT_TRUE(said.has_value());
  EXPECT_FALSE(said->will_return()) << "no one continues with it";
  EXPECT_TRUE(has_ended(control_));
}

TEST_F(PeerEndTest, SessionIsLeftToTheNextCollector) {
  begin();
  record();
  std::optional<Result<SessionSnapshot>> stopped;
  peer_->stop_recording([&](auto result) { stopped.emplace(std::move(result)); });
  open_stream(1);
  send_events(1, 0, 10);
  EXPECT_EQ(core_->live_sessions, 1u);
  peer_->shut_down();
  EXPECT_EQ(core_->live_sessions, 1u);
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  const auto left = session_in(SessionState::kInterrupted);
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(left->status, "the collector stopped; its next start continues the session");
  EXPECT_EQ(left->totals.events, 10u);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->code(), Code::kUnavailable);
  EXPECT_EQ(stopped->error().message, left->status);
  const auto manifest = storage::read_manifest(posix_, left->directory);
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->state, storage::SessionState::kRecording);
  EXPECT_EQ(notes_of(*left).back(), "the collector stopped; the session waits for the next one");
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
  EXPECT_FALSE(sweep(options_.resume + kLate)) << "there is nothing left of it here";
}

TEST_F(PeerEndTest, SessionWhoseAgentIsAwayIsLeftAtOnce) {
  begin();
  record();
  peer_->drop_links("the cable");
  peer_->shut_down();
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  EXPECT_TRUE(when([](const auto& one) {
    return one.state == SessionState::kInterrupted &&
           one.status == "the collector stopped; its next start continues the session";
  }));
}

TEST_F(PeerEndTest, SealsAtStopIfConfigured) {
  options_.seal_at_stop = true;
  begin();
  record();
  peer_->drop_links("the cable");
  peer_->shut_down();
  ASSERT_TRUE(loop_.run_until([&] { return core_->live_sessions == 0; }));
  const auto sealed = session_in(SessionState::kRecovered);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_EQ(sealed->status, "collector stopped");
}

// So that it need not come back: first the ack, then the Bye.
TEST_F(PeerEndTest, EndedRecordingIsSealedBeforeItsAgentIsLeft) {
  begin();
  record();
  hold_seals();
  end_recording();
  peer_->shut_down();
  run();
  EXPECT_FALSE(bye().has_value());
  let_go();
  const auto ack = wait_for(control_, FrameType::kAck);
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->parsed<wire::Ack>().recording_ended(), 1u);
  EXPECT_TRUE(wait_for(control_, FrameType::kBye).has_value());
  ASSERT_TRUE(session_in(SessionState::kComplete).has_value());
  EXPECT_EQ(core_->live_sessions, 0u);
}

TEST_F(PeerEndTest, ShutdownKeepsGoneAgentsGone) {
  begin();
  connect();
  wire::Bye bye;
  bye.set_reason("over");
  say(control_, FrameType::kBye, bye);
  data_.end_sending();
  ASSERT_TRUE(loop_.run_until([this] { return shown().state == AgentState::kGone; }));
  peer_->shut_down();
  EXPECT_EQ(shown().state, AgentState::kGone);
}

}  // namespace
}  // namespace collect::ingest
