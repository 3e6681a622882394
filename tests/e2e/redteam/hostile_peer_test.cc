// Each state of the protocol × each kind of bad frame, against the real daemon: the connection ends
// within its time, what came before is kept, a witness that records meanwhile loses nothing, and
// the daemon's memory stays what it was.
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/e2e/redteam/hostile_frames.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kWitness = 4'200'000;  // above the largest pid that Linux gives out
constexpr uint32_t kHostile = 4'200'001;
constexpr uint64_t kKept = 50;  // events that a hostile peer stores rightly before it misbehaves

// How far a peer came before it says something wrong, and on which of its channels it does.
struct PeerState {
  const char* name;
  wire::Channel channel;
  // Leads a peer there; null when the collector did not answer as it should.
  std::function<std::unique_ptr<RawConnection>(uint16_t port, uint32_t pid,
                                               std::unique_ptr<RawAgent>& agent)>
      reach;
  bool stores = false;  // it has stored kKept events
};

void expect_answer(bool came, const char* what) {
  EXPECT_TRUE(came) << what;
}

std::unique_ptr<RawAgent> recording_agent(uint16_t port, uint32_t pid) {
  auto agent = std::make_unique<RawAgent>(port, pid);
  expect_answer(agent->ready, "an agent is welcome");
  expect_answer(agent->data.send(page_bytes(1, 0, events(1000, kKept))), "a page is taken");
  expect_answer(agent->control.receive_ack(1, kKept), "the page is acknowledged");
  return agent;
}

std::vector<PeerState> states() {
  using Connection = std::unique_ptr<RawConnection>;
  using Agent = std::unique_ptr<RawAgent>;
  const auto fresh = [](uint16_t port, uint32_t, Agent&) {
    return std::make_unique<RawConnection>(port);
  };
  const auto control_hello = [](uint16_t port, uint32_t pid, Agent&) -> Connection {
    auto control = std::make_unique<RawConnection>(port);
    const auto welcome = introduce(
        *control,
        hello(wire::CHANNEL_CONTROL, pid, "c" + std::to_string(100'000'000'000'000 + pid)));
    expect_answer(welcome && welcome->type == wire::FrameType::kWelcome, "control is welcome");
    return control;
  };
  const auto challenged = [](uint16_t port, uint32_t pid, Agent&) -> Connection {
    auto control = std::make_unique<RawConnection>(port);
    control->send(wire::FrameType::kHello, hello(wire::CHANNEL_CONTROL, pid,
                                                 "d" + std::to_string(100'000'000'000'000 + pid)));
    const auto answer = control->receive();
    expect_answer(answer && answer->type == wire::FrameType::kChallenge, "control is challenged");
    return control;
  };
  const auto after = [](wire::Channel channel, std::vector<Octets> said) {
    return [channel, said](uint16_t port, uint32_t pid, Agent& agent) -> Connection {
      agent = recording_agent(port, pid);
      for (const Octets& bytes : said) expect_answer(agent->data.send(bytes), "it is taken");
      RawConnection& which = channel == wire::CHANNEL_DATA ? agent->data : agent->control;
      return std::make_unique<RawConnection>(std::move(which));
    };
  };
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(kKept);
  wire::RecordingEnd end;
  end.set_recording(1);
  const Octets closed = frame_bytes(wire::FrameType::kStreamClose, close.SerializeAsString());
  const Octets ended = frame_bytes(wire::FrameType::kRecordingEnd, end.SerializeAsString());
  return {
      {"nothing said, control", wire::CHANNEL_CONTROL, fresh},
      {"nothing said, data", wire::CHANNEL_DATA, fresh},
      {"control challenged", wire::CHANNEL_CONTROL, challenged},
      {"control welcomed, no data", wire::CHANNEL_CONTROL, control_hello},
      {"recording, on control", wire::CHANNEL_CONTROL, after(wire::CHANNEL_CONTROL, {}), true},
      {"recording, on data", wire::CHANNEL_DATA, after(wire::CHANNEL_DATA, {}), true},
      {"stream closed", wire::CHANNEL_DATA, after(wire::CHANNEL_DATA, {closed}), true},
      {"recording ended", wire::CHANNEL_DATA, after(wire::CHANNEL_DATA, {closed, ended}), true},
  };
}

// What is no mistake in that state.
bool is_allowed(const PeerState& state, const HostileFrame& frame) {
  // Where nothing was said, a Hello is what is waited for; where a challenge was made, a Proof.
  const std::string name = state.name;
  return (name.starts_with("nothing") && frame.name == "a second Hello") ||
         (name == "control challenged" && frame.name == "a Proof that no one asked for");
}

class HostilePeer : public testing::Test {
 protected:
  Scratch scratch_;
  CollectorProcess collector_{
      scratch_, {"--resume-ms", "500", "--heartbeat-ms", "60000", "--seal-at-stop", "true"}};
};

TEST_F(HostilePeer, EveryStateTimesEveryBadFrame) {
  RawAgent witness(collector_.ingest_port(), kWitness);
  ASSERT_TRUE(witness.ready);
  uint64_t witnessed = 0;
  uint32_t pid = kHostile;
  size_t tried = 0;
  const uint64_t memory_before = collector_.process().resident_bytes();
  for (const PeerState& state : states()) {
    std::vector<HostileFrame> frames = broken_frames(state.stores ? kKept : 0);
    for (HostileFrame& frame : misplaced_frames(state.channel)) frames.push_back(std::move(frame));
    for (const HostileFrame& frame : frames) {
      if (is_allowed(state, frame)) continue;
      SCOPED_TRACE(std::string(state.name) + ": " + frame.name);
      std::unique_ptr<RawAgent> agent;
      const auto connection = state.reach(collector_.ingest_port(), ++pid, agent);
      connection->send(frame.bytes);
      EXPECT_TRUE(frame.unfinished || connection->is_closed_by_peer());
      ++tried;
      ASSERT_TRUE(collector_.process().running());
    }
    ASSERT_TRUE(witness.data.send(page_bytes(1, witnessed, events(1000 + witnessed, 100))));
    witnessed += 100;
  }
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(witnessed);
  wire::RecordingEnd end;
  end.set_recording(1);
  ASSERT_TRUE(witness.data.send(wire::FrameType::kStreamClose, close));
  ASSERT_TRUE(witness.data.send(wire::FrameType::kRecordingEnd, end));
  const auto sessions = sealed_sessions(collector_.root(), kWitness);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  EXPECT_EQ(sessions[0].totals().events, witnessed) << "the witness lost something";
  RecordProperty("bad_inputs", static_cast<int>(tried));
  std::printf("%zu bad inputs in %zu states\n", tried, states().size());
  EXPECT_LT(collector_.process().resident_bytes(), memory_before + (64u << 20));
  EXPECT_TRUE(collector_.stop().exited_with(0));
  // What each of them had stored rightly is there, and every file holds.
  for (const std::string& directory : session_directories(collector_.root())) {
    const RecordedSession session(directory);
    if (session.manifest()["process"].value("pid", 0u) == kWitness) continue;
    EXPECT_EQ(session.totals().events, kKept) << directory;
    EXPECT_NE(session.state(), "recording") << directory;
    const Ending verified =
        run(scratch_.path(), {program("collectctl"), "verify", "--allow-incomplete", directory});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }
}

}  // namespace
}  // namespace collect::e2e
