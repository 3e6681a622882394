// A collector that checks an agent: it listens, accepts one process, plays what its fields say, and
// looks at everything that comes. On the caller's thread; every wait has a bound.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/conformance/agents/session_watch.h"
#include "proto/conformance/frame_link.h"

namespace collect::conformance {

class PlayedCollector {
 public:
  enum class Stage : uint8_t { kHello, kProof, kHeld, kWelcomed };
  struct Connection {
    FrameLink link;
    Stage stage = Stage::kHello;
    wire::Channel channel = wire::CHANNEL_UNSPECIFIED;
    wire::Hello hello;
    wire::Challenge challenge;
    std::optional<wire::Refuse> refuse;
    bool is_over = false;  // ended by the agent, or what it sent is no frame
    Clock::time_point held_at{};
    Clock::time_point frame_at{};  // of the last one
  };

  explicit PlayedCollector(const Settings& settings);

  Status listen() { return listener_.open(); }
  const std::string& address() const { return listener_.address(); }

  // Plays until this holds. False: the bound came first.
  bool wait(const std::function<bool()>& holds, milliseconds bound);
  bool wait(const std::function<bool()>& holds) { return wait(holds, settings_.timeout); }
  // Both channels are welcomed. False: faults() or why_not_open() says why.
  bool wait_open();
  std::string why_not_open() const;
  bool is_open() const;

  // The last connection of a channel; null: none came.
  Connection* connection(wire::Channel channel);
  const Connection* connection(wire::Channel channel) const;
  size_t connections() const { return connections_.size(); }

  void send_probe();
  void send_command(const wire::Command& command);
  void send_acks();
  void drop();  // closes both, without a message
  // The verdict on an agent that had to refuse and close this channel.
  Verdict refused(wire::Channel channel, wire::RefuseCode code = wire::REFUSE_PROTOCOL);
  // The verdict on one that had to continue: it answers a probe or a command.
  Verdict goes_on();

  // How it plays.
  uint32_t heartbeat_ms = 1000;
  uint64_t features = 0;          // those of the Hello that it agrees to
  uint64_t unasked_features = 0;  // that it names though the Hello did not
  bool acks = true;
  bool acks_end = true;  // recording_ended, for a RecordingEnd
  bool beats = true;
  bool closes_after_bye = true;
  bool slow = false;  // its opening goes out byte by byte
  bool wrong_token = false;
  milliseconds data_hold{0};      // before the Welcome on data
  std::optional<wire::Ack> kept;  // what Resume names

  // What came.
  Faults faults;
  SessionWatch watch{faults};
  std::vector<wire::CommandResult> results;
  uint32_t clock_replies = 0;
  bool bye = false;
  std::string resume_key;

 private:
  void serve(milliseconds bound);
  void take_all(Connection& connection);
  void on_frame(Connection& connection, const ReceivedFrame& frame);
  void on_hello(Connection& connection, const ReceivedFrame& frame);
  void on_proof(Connection& connection, const ReceivedFrame& frame);
  void on_refuse(Connection& connection, const ReceivedFrame& frame);
  void on_control(Connection& connection, const ReceivedFrame& frame);
  void on_data(const ReceivedFrame& frame);
  void on_clock_reply(const ReceivedFrame& frame);
  void look_at_hello(const wire::Hello& hello);
  void send(Connection& connection, wire::FrameType type,
            const google::protobuf::MessageLite& message);
  void welcome(Connection& connection);
  void beat();
  void look_at_silence(const Connection& control);

  const Settings settings_;
  Listener listener_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::optional<wire::Hello> first_hello_;
  std::vector<std::string> nonces_;
  std::deque<wire::ClockProbe> probes_;  // not answered yet
  uint32_t probes_sent_ = 0;
  uint64_t commands_sent_ = 0;
  uint64_t last_t3_ns_ = 0;
  bool is_known_ = false;  // the agent has the resume key
  Clock::time_point beat_at_{};
};

}  // namespace collect::conformance
