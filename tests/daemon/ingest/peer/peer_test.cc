// A process's links, clock and commands, by hand: what is said, what is shown, and every deadline.
#include <gmock/gmock.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <future>
#include <set>

#include "tests/child/forked_child.h"
#include "tests/daemon/ingest/peer/peer_fixture.h"

namespace collect::ingest {
namespace {

using fakes::FrameSocket;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::FrameType;

// ---- links

TEST_F(PeerTest, WelcomesSayWhatHolds) {
  process_.features = ~uint64_t{0};
  begin();
  connect();
  EXPECT_EQ(control_welcome_.version(), wire::kProtocolVersion);
  EXPECT_EQ(control_welcome_.collector(), "collector under test");
  EXPECT_EQ(control_welcome_.heartbeat_ms(), 1000u);
  EXPECT_EQ(control_welcome_.features(), wire::kFeatureColumns | wire::kFeatureStartFilter);
  EXPECT_EQ(control_welcome_.resume_key(), std::string(16, 9));
  EXPECT_EQ(control_welcome_.session(), "");
  const auto welcome = next(data_, FrameType::kWelcome)->parsed<wire::Welcome>();
  EXPECT_EQ(welcome.version(), wire::kProtocolVersion);
  EXPECT_EQ(welcome.collector(), "collector under test");
  EXPECT_EQ(welcome.heartbeat_ms(), 1000u);
  EXPECT_EQ(welcome.features(), control_welcome_.features());
  EXPECT_EQ(welcome.session(), "");
  EXPECT_FALSE(welcome.resumed());
  EXPECT_EQ(shown().state, AgentState::kConnected);
  EXPECT_EQ(shown().address, "peer");
  EXPECT_EQ(shown().reconnects, 0u);
  const auto now = std::chrono::system_clock::now();
  EXPECT_LE(shown().connected_at, now);
  EXPECT_GE(shown().connected_at, now - std::chrono::minutes(5));

  start_recording();
  const auto session = session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(shown().state, AgentState::kRecording);
  EXPECT_EQ(shown().session, session->name);
  said_recording_ = 1;
  connect();
  EXPECT_EQ(control_welcome_.session(), session->name);
  EXPECT_EQ(next(data_, FrameType::kWelcome)->parsed<wire::Welcome>().session(), session->name);
  EXPECT_EQ(shown().reconnects, 1u);
  EXPECT_EQ(shown().session, session->name);
}

TEST_F(PeerTest, HalfAPairIsLetGoAfterAWhile) {
  options_.heartbeat = kPairDeadline;  // it is not the silence that ends it
  begin();
  control_ = adopt(wire::CHANNEL_CONTROL, true);
  EXPECT_TRUE(sweep(kPairDeadline - kEarly));
  EXPECT_FALSE(control_.ends(milliseconds{0}));
  EXPECT_FALSE(sweep(kPairDeadline + kLate)) << "it never was connected";
  EXPECT_TRUE(control_.ends(milliseconds{0}));
  EXPECT_EQ(shown().state, AgentState::kGone);
  EXPECT_EQ(shown().status, "did not come back");
  EXPECT_THAT(watching_.agents[watching_.agents.size() - 2].status,
              HasSubstr("no data channel connected"));

  // A process that is known may come with data first.
  data_ = adopt(wire::CHANNEL_DATA);
  FrameSocket second = adopt(wire::CHANNEL_DATA);
  EXPECT_TRUE(data_.ends(milliseconds{0})) << "replaced";
  EXPECT_TRUE(sweep(kPairDeadline - kEarly));
  EXPECT_FALSE(second.ends(milliseconds{0}));
  sweep(kPairDeadline + kLate);
  EXPECT_TRUE(second.ends(milliseconds{0}));
}

// What is shown of it remains when it comes back, and what its new hello says is adopted.
TEST_F(PeerTest, ReturningAgentKeepsItsIdentity) {
  begin();
  connect();
  start_recording();
  const auto session = session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  storage::FunctionFilter filter;
  peer_->note_start_filter({3, {"nothing"}, ""}, filter);
  wire::Bye bye;
  bye.set_reason("enough");
  say(control_, FrameType::kBye, bye);
  data_.close();
  ASSERT_TRUE(loop_.run_until([this] { return shown().state == AgentState::kGone; }));
  const AgentSnapshot before = shown();
  EXPECT_EQ(before.status, "the agent said goodbye: enough");
  process_.tag = "changed";
  control_ = adopt(wire::CHANNEL_CONTROL);
  wire::Heartbeat beat;
  beat.set_spooled_bytes(7);
  say(control_, FrameType::kHeartbeat, beat);
  const AgentSnapshot& now = shown();
  EXPECT_EQ(now.spooled_bytes, 7u);
  EXPECT_EQ(now.id, before.id);
  EXPECT_EQ(now.state, AgentState::kGone) << "half of it is there";
  EXPECT_EQ(now.status, before.status);
  EXPECT_EQ(now.session, session->name);
  EXPECT_EQ(now.connected_at, before.connected_at);
  EXPECT_EQ(now.reconnects, before.reconnects);
  ASSERT_TRUE(now.start_filter.has_value());
  EXPECT_EQ(now.start_filter->functions, 3u);
  EXPECT_EQ(now.tag, "changed");
  EXPECT_FALSE(now.dialled);
  control_.close();
  sweep(milliseconds{0});
  EXPECT_EQ(shown().state, AgentState::kGone) << "half of it came and went";
}

TEST_F(PeerTest, ShowsDialledAgentsWithTheirAddress) {
  begin();
  connect("10.0.0.1:7710");
  EXPECT_EQ(shown().address, "10.0.0.1:7710");
  EXPECT_TRUE(shown().dialled);
  start_recording();
  const auto session = session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ(session->route, "10.0.0.1:7710");
  EXPECT_THAT(manifest(*session), HasSubstr("10.0.0.1:7710"));
}

TEST_F(PeerTest, SilenceEndsBothLinks) {
  options_.heartbeat = milliseconds{5'000};
  begin();
  connect();
  EXPECT_TRUE(sweep(3 * options_.heartbeat - kEarly));
  EXPECT_TRUE(peer_->connected());
  sweep(3 * options_.heartbeat + kLate);
  EXPECT_FALSE(peer_->connected());
  EXPECT_EQ(shown().status, "nothing was received from the agent for 15000 ms");
  EXPECT_EQ(shown().state, AgentState::kDisconnected);
  EXPECT_TRUE(control_.ends(milliseconds{0}));
  EXPECT_TRUE(data_.ends(milliseconds{0}));
  // Then it is waited for, and forgotten.
  EXPECT_TRUE(sweep(options_.resume - kEarly));
  EXPECT_FALSE(sweep(options_.resume + kLate));
  EXPECT_EQ(shown().state, AgentState::kGone);
  EXPECT_EQ(shown().status, "did not come back");
}

// A process of this machine, by its number in our PID namespace.
class SenderTest : public PeerTest {
 protected:
  void SetUp() override {
    struct stat found{};
    ASSERT_EQ(::stat("/proc/self/ns/pid", &found), 0);
    pid_namespace_ = found.st_ino;
    is_local_ = true;
    sender_pid_ = static_cast<uint32_t>(sender_.pid());
  }
  void end_process() {
    sender_.send_signal(SIGKILL);
    sender_.wait();
  }
  // Its session once it has lost its links, and some time has passed.
  std::optional<SessionSnapshot> record_and_break() {
    begin();
    connect();
    start_recording();
    EXPECT_TRUE(session_in(SessionState::kActive).has_value());
    control_.close();
    data_.close();
    EXPECT_TRUE(loop_.run_until([this] { return !peer_->connected(); }));
    EXPECT_TRUE(sweep(milliseconds{100}));
    return reported_.session([](const auto&) { return true; });
  }

  child::ForkedChild sender_{child::pause_until_killed};
};

TEST_F(SenderTest, ProcessThatIsGoneIsNotWaitedFor) {
  EXPECT_EQ(record_and_break()->state, SessionState::kInterrupted);
  end_process();
  sweep(milliseconds{100});
  const auto sealed = session_in(SessionState::kRecovered);
  ASSERT_TRUE(sealed.has_value());
  EXPECT_THAT(manifest(*sealed), HasSubstr("its process ended without a report"));
  EXPECT_EQ(shown().state, AgentState::kGone);
}

// It ended, and no one has waited for it yet.
TEST_F(SenderTest, ZombieIsGone) {
  EXPECT_EQ(record_and_break()->state, SessionState::kInterrupted);
  sender_.send_signal(SIGKILL);
  siginfo_t ended{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(sender_.pid()), &ended, WEXITED | WNOWAIT), 0);
  sweep(milliseconds{100});
  EXPECT_TRUE(session_in(SessionState::kRecovered).has_value());
}

// What an agent elsewhere calls its number is no process of ours.
TEST_F(SenderTest, NumberOfAnotherNamespaceSaysNothing) {
  ++pid_namespace_;
  record_and_break();
  end_process();
  EXPECT_TRUE(sweep(options_.resume - kEarly));
  EXPECT_EQ(reported_.session([](const auto&) { return true; })->state, SessionState::kInterrupted);
}

TEST_F(SenderTest, NumberOfARemoteAgentSaysNothing) {
  is_local_ = false;
  record_and_break();
  end_process();
  EXPECT_TRUE(sweep(options_.resume - kEarly));
  EXPECT_EQ(reported_.session([](const auto&) { return true; })->state, SessionState::kInterrupted);
}

TEST_F(PeerTest, ForgetsAnAbsentAgentWithoutASession) {
  begin();
  connect();
  EXPECT_TRUE(sweep(milliseconds{0}, false)) << "it is there";
  peer_->drop_links("cut");
  EXPECT_TRUE(sweep(milliseconds{0}, true));
  EXPECT_FALSE(sweep(milliseconds{0}, false));
  EXPECT_EQ(shown().state, AgentState::kGone);
}

// Nothing is sent for half a heartbeat: then one goes out, and not before.
TEST_F(PeerTest, HeartbeatsGoOutWhereNothingElseDoes) {
  options_.heartbeat = milliseconds{8'000};
  begin();
  connect();
  sweep(milliseconds{0});  // takes note of what was sent
  sweep(options_.heartbeat / 2 - kEarly);
  EXPECT_FALSE(next(control_, FrameType::kHeartbeat).has_value());
  sweep(options_.heartbeat / 2 + kLate);
  EXPECT_TRUE(next(control_, FrameType::kHeartbeat).has_value());
  sweep(options_.heartbeat / 2 + 2 * kLate);
  EXPECT_FALSE(next(control_, FrameType::kHeartbeat).has_value()) << "that was one";
}

TEST_F(PeerTest, ReceivedBytesAreCountedOnce) {
  begin();
  connect();
  const auto beat = fakes::frame_bytes(FrameType::kHeartbeat, wire::Heartbeat());
  ASSERT_TRUE(control_.send_bytes(beat));
  start_recording();
  run();
  sweep(milliseconds{0});
  wire::RecordingStart start;
  start.set_recording(1);
  start.set_atf_version(2);
  start.set_start_ns(1'000'000);
  const uint64_t expected =
      beat.size() + fakes::frame_bytes(FrameType::kRecordingStart, start).size();
  EXPECT_EQ(core_->counters.bytes_received, expected);
  sweep(milliseconds{0});
  EXPECT_EQ(core_->counters.bytes_received, expected);
  said_recording_ = 1;
  connect();
  ASSERT_TRUE(control_.send_bytes(beat));
  run();
  sweep(milliseconds{0});
  EXPECT_EQ(core_->counters.bytes_received, expected + beat.size()) << "of the new connection";
}

// ---- the control channel

TEST_F(PeerTest, ClockIsProbedInBursts) {
  begin();
  connect();
  wire::ClockReply reply;
  uint32_t burst = 0;
  for (uint32_t number = 0; number < kProbesPerBurst; ++number) {
    const auto frame = next(control_, FrameType::kClockProbe);
    ASSERT_TRUE(frame.has_value()) << number;
    const auto probe = frame->parsed<wire::ClockProbe>();
    EXPECT_EQ(probe.number(), number);
    if (number == 0) burst = probe.burst();
    EXPECT_EQ(probe.burst(), burst);
    EXPECT_LE(probe.t1_ns(), boottime_ns());
    EXPECT_GT(probe.t1_ns() + 60'000'000'000u, boottime_ns());
    reply.set_burst(burst);
    reply.set_number(number + 1);  // of another probe: nothing follows
    say(control_, FrameType::kClockReply, reply);
    reply.set_number(number);
    reply.set_burst(burst + 1);
    say(control_, FrameType::kClockReply, reply);
    EXPECT_FALSE(next(control_, FrameType::kClockProbe).has_value());
    reply.set_burst(burst);
    reply.set_t2_ns(probe.t1_ns() + 77'000'000'000);
    reply.set_t3_ns(probe.t1_ns() + 77'000'000'000);
    say(control_, FrameType::kClockReply, reply);
  }
  EXPECT_FALSE(next(control_, FrameType::kClockProbe).has_value()) << "the burst is over";
  start_recording();  // what was found is asked to it
  const auto session = session_in(SessionState::kActive);
  ASSERT_TRUE(session.has_value());
  std::optional<Result<uint64_t>> marked;
  peer_->annotate(0, "now", [&](Result<uint64_t> at) { marked.emplace(std::move(at)); });
  ASSERT_TRUE(loop_.run_until([&] { return marked.has_value(); }));
  ASSERT_TRUE(marked->ok());
  EXPECT_NEAR(static_cast<double>(**marked) - static_cast<double>(boottime_ns()), 77e9, 30e9);
  auto stored = storage::manifest_from_json(manifest(*session));
  EXPECT_TRUE(loop_.run_until([&] {
    sweep(milliseconds{0});
    stored = storage::manifest_from_json(manifest(*session));
    return stored.ok() && !stored->clock_syncs.empty();
  }));
  ASSERT_TRUE(stored.ok());
  ASSERT_EQ(stored->clock_syncs.size(), 1u);
  EXPECT_NEAR(static_cast<double>(stored->clock_syncs[0].offset_ns), 77e9, 30e9);
  EXPECT_EQ(stored->clock_syncs[0].boot_id, boot_id());
  EXPECT_NEAR(static_cast<double>(stored->clock_syncs[0].at_unix_ns),
              static_cast<double>(storage::system_clock().unix_ns()), 60e9);
}

TEST_F(PeerTest, NextBurstComesAfterAPause) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  const auto first = next(control_, FrameType::kClockProbe);
  ASSERT_TRUE(first.has_value());
  sweep(kProbeDeadline + kLate);  // no reply: the burst is given up
  sweep(kBurstInterval - kEarly);
  EXPECT_FALSE(next(control_, FrameType::kClockProbe).has_value());
  sweep(kBurstInterval + kLate);
  const auto second = next(control_, FrameType::kClockProbe);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(second->parsed<wire::ClockProbe>().number(), 0u);
  EXPECT_EQ(second->parsed<wire::ClockProbe>().burst(),
            first->parsed<wire::ClockProbe>().burst() + 1);
  sweep(milliseconds{0});  // a burst that continues is not begun again
  EXPECT_FALSE(next(control_, FrameType::kClockProbe).has_value());
}

wire::Command flush() {
  wire::Command command;
  command.mutable_flush();
  return command;
}

TEST_F(PeerTest, CommandsAreAnsweredOnceOrTimeOut) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  std::optional<Result<wire::CommandResult>> first, second;
  peer_->command(flush(), [&](auto result) { first.emplace(std::move(result)); });
  peer_->command(flush(), [&](auto result) { second.emplace(std::move(result)); });
  const auto one = next(control_, FrameType::kCommand)->parsed<wire::Command>();
  const auto two = next(control_, FrameType::kCommand)->parsed<wire::Command>();
  EXPECT_TRUE(one.has_flush());
  EXPECT_NE(one.command_id(), two.command_id());
  wire::CommandResult result;
  result.set_command_id(two.command_id());
  result.set_ok(true);
  say(control_, FrameType::kCommandResult, result);
  EXPECT_FALSE(first.has_value());
  ASSERT_TRUE(second.has_value());
  EXPECT_TRUE(second->ok());
  say(control_, FrameType::kCommandResult, result);  // once more, and one that no one asked for
  result.set_command_id(99);
  say(control_, FrameType::kCommandResult, result);
  sweep(kCommandTimeout - kEarly);
  EXPECT_FALSE(first.has_value());
  sweep(kCommandTimeout + kLate);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->code(), Code::kUnavailable);
  EXPECT_EQ(first->error().message,
            "agents/" + std::to_string(shown().id) + " did not answer within 10 s");
  result.set_command_id(one.command_id());
  say(control_, FrameType::kCommandResult, result);  // too late
  EXPECT_TRUE(peer_->connected());
}

TEST_F(PeerTest, SoManyCommandsMayWait) {
  begin();
  connect();
  size_t refused = 0;
  std::optional<Result<wire::CommandResult>> last;
  for (size_t at = 0; at < kMaxPendingCommands; ++at) {
    peer_->command(flush(), [&](auto result) { refused += result.ok() ? 0 : 1; });
  }
  EXPECT_EQ(refused, 0u);
  peer_->command(flush(), [&](auto result) { last.emplace(std::move(result)); });
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->code(), Code::kLimit);
  EXPECT_THAT(last->error().message, HasSubstr("has not answered 256 commands"));
  peer_->drop_links("cut");
  EXPECT_EQ(refused, kMaxPendingCommands) << "the link is gone, so no answer comes";
}

TEST_F(PeerTest, GivesUpOnARecordingThatNeverBegins) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  std::optional<Result<SessionSnapshot>> started, another;
  peer_->start_recording([&](auto answer) { started.emplace(std::move(answer)); });
  auto command = next(control_, FrameType::kCommand)->parsed<wire::Command>();
  EXPECT_TRUE(command.has_start_recording());
  wire::CommandResult result;
  result.set_ok(true);
  result.set_recording(5);
  result.set_command_id(command.command_id());
  say(control_, FrameType::kCommandResult, result);
  sweep(kCommandTimeout - kEarly);
  EXPECT_FALSE(started.has_value());
  sweep(kCommandTimeout + kLate);
  ASSERT_TRUE(started.has_value());
  EXPECT_EQ(started->code(), Code::kUnavailable);
  // Another recording than the one that it began is no answer either; the end of the link is.
  peer_->start_recording([&](auto answer) { another.emplace(std::move(answer)); });
  command = next(control_, FrameType::kCommand)->parsed<wire::Command>();
  result.set_command_id(command.command_id());
  say(control_, FrameType::kCommandResult, result);
  start_recording(4);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  EXPECT_FALSE(another.has_value());
  peer_->drop_links("cut");
  ASSERT_TRUE(another.has_value());
  EXPECT_EQ(another->error().message, "the agent's connection ended: cut");
}

TEST_F(PeerTest, GivesUpOnAnAgentThatNeverStops) {
  options_.heartbeat = kMaxHeartbeat;
  begin();
  connect();
  start_recording();
  open_stream(1);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  std::optional<Result<SessionSnapshot>> stopped, twice;
  peer_->stop_recording([&](auto result) { stopped.emplace(std::move(result)); });
  EXPECT_TRUE(next(control_, FrameType::kCommand)->parsed<wire::Command>().has_stop_recording());
  peer_->stop_recording([&](auto result) { twice.emplace(std::move(result)); });
  EXPECT_FALSE(next(control_, FrameType::kCommand).has_value()) << "the command was sent already";
  sweep(kStopIdleDeadline - kEarly);
  EXPECT_FALSE(
      reported_.was_shown([](const auto& one) { return one.state == SessionState::kSealing; }));
  sweep(kStopIdleDeadline + kLate);
  ASSERT_TRUE(loop_.run_until([&] { return stopped.has_value() && twice.has_value(); }));
  ASSERT_TRUE(stopped->ok());
  EXPECT_EQ((*stopped)->state, SessionState::kRecovered);
  EXPECT_EQ((*stopped)->status, "the agent did not end the recording on command");
  // That recording is over for good.
  const auto ack = wait_for(control_, FrameType::kAck);
  EXPECT_EQ(ack->parsed<wire::Ack>().recording_ended(), 1u);
}

TEST_F(PeerTest, StopIsAnsweredDuringTheSeal) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  std::promise<void> go_on;
  core_->seal_threads.add({}, [&] { go_on.get_future().wait(); });
  end_recording();
  std::optional<Result<SessionSnapshot>> stopped;
  peer_->stop_recording([&](auto result) { stopped.emplace(std::move(result)); });
  EXPECT_FALSE(stopped.has_value());
  go_on.set_value();
  ASSERT_TRUE(loop_.run_until([&] { return stopped.has_value(); }));
  ASSERT_TRUE(stopped->ok()) << to_string(stopped->error());
  EXPECT_EQ((*stopped)->state, SessionState::kComplete);
}

TEST_F(PeerTest, AcksOfManyStreamsComeInFramesOf64) {
  begin();
  connect();
  start_recording();
  constexpr uint32_t kStreams = 130;
  for (uint32_t stream = 1; stream <= kStreams; ++stream) open_stream(stream);
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  std::set<uint32_t> acked;
  std::vector<uint8_t> bytes;
  for (uint32_t stream = 1; stream <= kStreams; ++stream) {
    const auto page =
        fakes::page_frame_bytes(fakes::index_page_header(stream, 0, 1), fakes::index_events(0, 1));
    bytes.insert(bytes.end(), page.begin(), page.end());
  }
  ASSERT_TRUE(data_.send_bytes(bytes));
  while (acked.size() < kStreams) {
    const auto frame = wait_for(control_, FrameType::kAck);
    ASSERT_TRUE(frame.has_value());
    const auto ack = frame->parsed<wire::Ack>();
    EXPECT_LE(ack.positions_size(), 64);
    EXPECT_GE(ack.positions_size(), 1);
    for (const auto& position : ack.positions()) {
      EXPECT_EQ(position.index_next(), 1u);
      EXPECT_TRUE(acked.insert(position.stream_id()).second) << "reported twice";
    }
  }
  // And where they go on, when the process comes back.
  said_recording_ = 1;
  data_ = {};
  control_ = adopt(wire::CHANNEL_CONTROL);
  data_ = adopt(wire::CHANNEL_DATA);
  std::set<uint32_t> resumed;
  std::vector<int> sizes;
  while (resumed.size() < kStreams) {
    const auto frame = wait_for(data_, FrameType::kResume);
    ASSERT_TRUE(frame.has_value());
    const auto resume = frame->parsed<wire::Resume>();
    sizes.push_back(resume.positions_size());
    for (const auto& position : resume.positions()) resumed.insert(position.stream_id());
  }
  EXPECT_THAT(sizes, ElementsAre(64, 64, 2));
}

}  // namespace
}  // namespace collect::ingest
