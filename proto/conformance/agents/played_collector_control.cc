// What a PlayedCollector does once the channels are open.
#include <fmt/core.h>

#include <algorithm>

#include "proto/conformance/agents/played_collector.h"

namespace collect::conformance {
namespace {

using wire::FrameType;

constexpr uint32_t kBurst = 1;
constexpr int kSilentIntervals = 3;

uint64_t collector_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
          .count());
}

}  // namespace

void PlayedCollector::send(Connection& connection, FrameType type,
                           const google::protobuf::MessageLite& message) {
  if (connection.is_over || !connection.link.is_open()) return;
  const bool is_opening = type == FrameType::kChallenge || type == FrameType::kWelcome;
  if (slow && is_opening) {
    connection.link.send_byte_by_byte(frame_bytes(type, message));
  } else {
    connection.link.send(type, message);
  }
}

void PlayedCollector::beat() {
  if (Clock::now() - beat_at_ < milliseconds(heartbeat_ms) / 2) return;
  beat_at_ = Clock::now();
  send(*connection(wire::CHANNEL_CONTROL), FrameType::kHeartbeat, wire::Heartbeat());
}

// An agent that was stopped as a whole is silent too, so it is given the three intervals.
void PlayedCollector::look_at_silence(const Connection& control) {
  if (bye || Clock::now() - control.frame_at < kSilentIntervals * milliseconds(heartbeat_ms))
    return;
  faults.add("heartbeats",
             fmt::format("nothing came on control for three intervals of {} ms", heartbeat_ms));
}

void PlayedCollector::on_control(Connection& connection, const ReceivedFrame& frame) {
  const auto no_message = [&] {
    faults.add("whole-frames",
               fmt::format("the body of a {} is no message", type_text(frame.type)));
  };
  switch (frame.type) {
    case FrameType::kClockReply:
      return on_clock_reply(frame);
    case FrameType::kCommandResult:
      if (const auto result = frame.parsed<wire::CommandResult>()) {
        results.push_back(*result);
      } else {
        no_message();
      }
      return;
    case FrameType::kHeartbeat:
      if (!frame.parsed<wire::Heartbeat>()) no_message();
      return;
    case FrameType::kCounters:
      if (const auto counters = frame.parsed<wire::Counters>(); !counters) {
        no_message();
      } else if (counters->counters_size() > static_cast<int>(wire::kMaxCounters)) {
        faults.add("limits", "more than 64 counters came in one frame");
      }
      return;
    case FrameType::kBye:
      bye = true;
      if (!closes_after_bye) return;
      connection.link.close();
      connection.is_over = true;
      return;
    default:
      faults.add("frame-places", type_text(frame.type) + " came on control");
  }
}

void PlayedCollector::on_clock_reply(const ReceivedFrame& frame) {
  const auto reply = frame.parsed<wire::ClockReply>();
  if (!reply) {
    faults.add("whole-frames", "the body of a ClockReply is no message");
    return;
  }
  if (probes_.empty()) {
    faults.add("clock-reply", "a ClockReply came without a probe");
    return;
  }
  const wire::ClockProbe probe = probes_.front();
  probes_.pop_front();
  ++clock_replies;
  if (reply->burst() != probe.burst() || reply->number() != probe.number() ||
      reply->t1_ns() != probe.t1_ns()) {
    faults.add("clock-reply", "it does not repeat burst, number and t1 of its probe");
  }
  if (reply->t2_ns() == 0 || reply->t3_ns() < reply->t2_ns()) {
    faults.add("clock-reply", fmt::format("t2 is {} and t3 {}", reply->t2_ns(), reply->t3_ns()));
  }
  if (reply->t2_ns() < last_t3_ns_) faults.add("clock-reply", "t2 is before the last t3");
  last_t3_ns_ = reply->t3_ns();
}

void PlayedCollector::on_data(const ReceivedFrame& frame) {
  watch.on_frame(frame);
  const bool changes = frame.type == FrameType::kPage || frame.type == FrameType::kStreamClose ||
                       frame.type == FrameType::kStalls;
  if (acks && changes) send_acks();
  Connection* control = connection(wire::CHANNEL_CONTROL);
  if (frame.type != FrameType::kRecordingEnd || !acks_end || control == nullptr) return;
  wire::Ack ack;
  ack.set_recording_ended(watch.recording());
  send(*control, FrameType::kAck, ack);
}

void PlayedCollector::send_acks() {
  Connection* control = connection(wire::CHANNEL_CONTROL);
  if (control == nullptr) return;
  const wire::Ack all = watch.ack();
  for (int first = 0; first < all.positions_size();
       first += static_cast<int>(wire::kMaxAcksPerFrame)) {
    wire::Ack ack;
    const int end =
        std::min(first + static_cast<int>(wire::kMaxAcksPerFrame), all.positions_size());
    for (int i = first; i < end; ++i) *ack.add_positions() = all.positions(i);
    ack.set_stalls_next(all.stalls_next());
    send(*control, FrameType::kAck, ack);
  }
}

void PlayedCollector::send_probe() {
  Connection* control = connection(wire::CHANNEL_CONTROL);
  if (control == nullptr) return;
  wire::ClockProbe probe;
  probe.set_burst(kBurst);
  probe.set_number(++probes_sent_);
  probe.set_t1_ns(collector_ns());
  probes_.push_back(probe);
  send(*control, FrameType::kClockProbe, probe);
}

void PlayedCollector::send_command(const wire::Command& command) {
  if (Connection* control = connection(wire::CHANNEL_CONTROL)) {
    send(*control, FrameType::kCommand, command);
  }
}

void PlayedCollector::drop() {
  for (const auto& one : connections_) {
    one->link.close();
    one->is_over = true;
  }
}

Verdict PlayedCollector::refused(wire::Channel channel, wire::RefuseCode code) {
  Connection& own = *this->connection(channel);
  const bool over = wait([&own] { return own.is_over; });
  if (!faults.of("whole-frames").empty()) {
    return Verdict::skipped("not reached: " + faults.of("whole-frames"));
  }
  std::string name = wire::RefuseCode_Name(code);
  const std::string expected =
      fmt::format("Refuse({}) and the end of the connection", name.erase(0, 7));
  if (!own.refuse) {
    return Verdict::failed(expected,
                           over ? "the connection ended without a Refuse" : "the agent continued");
  }
  if (own.refuse->code() != code) {
    return Verdict::failed(expected, refusal_text(*own.refuse) + " came");
  }
  return over ? Verdict::ok()
              : Verdict::failed(expected, "the connection stayed open after the Refuse");
}

Verdict PlayedCollector::goes_on() {
  const size_t before = clock_replies + results.size();
  const auto answers = [&] { return clock_replies + results.size() > before; };
  send_probe();
  wire::Command command;
  command.set_command_id(++commands_sent_);
  send_command(command);
  const bool ended = wait([&] { return answers() || !is_open(); }) && !answers();
  if (answers()) return Verdict::ok();
  if (!faults.of("whole-frames").empty()) {
    return Verdict::skipped("not reached: " + faults.of("whole-frames"));
  }
  for (const wire::Channel channel : {wire::CHANNEL_CONTROL, wire::CHANNEL_DATA}) {
    if (const Connection* one = connection(channel); one != nullptr && one->refuse) {
      return Verdict::failed("that the agent continues", refusal_text(*one->refuse));
    }
  }
  return Verdict::failed(
      "that the agent continues",
      ended ? "it ended a connection" : "it answers neither a ClockProbe nor a Command");
}

}  // namespace collect::conformance
