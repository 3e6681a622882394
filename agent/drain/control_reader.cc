#include "agent/drain/control_reader.h"

namespace collect::agent {

void ControlReader::read(uint64_t now_ms) {
  Channel& control = link_.control();
  for (uint32_t i = 0; i < kFramesPerRound && control.step == ChannelStep::kOpen; ++i) {
    const Bytes before = control.in.unread();
    if (!link_.read(now_ms, control)) return;
    arrived_ns_ = now_ns();
    wire::Frame frame;
    bool any = false;
    while (control.step == ChannelStep::kOpen && link_.next_frame(now_ms, control, frame)) {
      take(now_ms, frame);
      any = true;
    }
    if (!any && control.in.unread().size() == before.size()) return;
  }
}

void ControlReader::take(uint64_t now_ms, const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kClockProbe:
      answer_probe(now_ms, frame.body);
      return;
    case wire::FrameType::kAck:
      take_ack(now_ms, frame.body);
      return;
    case wire::FrameType::kCommand:
      if (!commands_.take(now_ms, frame.body)) {
        refuse(now_ms, "a Command that can't be read, or is longer than the protocol allows");
      }
      return;
    case wire::FrameType::kHeartbeat:
      return;  // the link has noted that the collector sent something
    case wire::FrameType::kBye:
      take_goodbye(now_ms, frame.body);
      return;
    case wire::FrameType::kRefuse:
      link_.refused(now_ms, link_.control(), frame.body);
      return;
    default:
      if (wire::is_known(frame.type)) {
        refuse(now_ms, "not what a collector says on the control channel");
      }
  }
}

void ControlReader::refuse(uint64_t now_ms, const char* reason) {
  link_.refuse(now_ms, link_.control(), collect_wire_RefuseCode_REFUSE_PROTOCOL, reason);
}

void ControlReader::take_goodbye(uint64_t now_ms, Bytes body) {
  collect_wire_Bye bye = collect_wire_Bye_init_zero;
  if (decode_message(body, collect_wire_Bye_fields, &bye)) {
    link_.collector_leaves(now_ms, bye.will_return);
  } else {
    refuse(now_ms, "a Bye that can't be read");
  }
}

void ControlReader::answer_probe(uint64_t now_ms, Bytes body) {
  collect_wire_ClockProbe probe = collect_wire_ClockProbe_init_zero;
  if (!decode_message(body, collect_wire_ClockProbe_fields, &probe)) {
    refuse(now_ms, "a ClockProbe that can't be read");
    return;
  }
  collect_wire_ClockReply reply = collect_wire_ClockReply_init_zero;
  reply.burst = probe.burst;
  reply.number = probe.number;
  reply.t1_ns = probe.t1_ns;
  reply.t2_ns = arrived_ns_;
  reply.t3_ns = now_ns();
  sender_.send(now_ms, wire::FrameType::kClockReply, collect_wire_ClockReply_fields, &reply);
}

void ControlReader::take_ack(uint64_t now_ms, Bytes body) {
  ack_ = collect_wire_Ack_init_zero;
  if (!decode_message(body, collect_wire_Ack_fields, &ack_)) {
    refuse(now_ms, "an Ack that can't be read");
    return;
  }
  // Before the pair is up, what was sent on the last link means nothing any more.
  if (!link_.is_up()) return;
  for (pb_size_t i = 0; i < ack_.positions_count; ++i) {
    shipper_.streams().acknowledge(ack_.positions[i]);
  }
  shipper_.stalls().acknowledge(ack_.stalls_next);
  if (recording_.collector_ended(now_ms, ack_.recording_ended)) {
    commands_.recording_is_over(now_ms);
  }
}

}  // namespace collect::agent
