#include "agent/drain/link/handshake.h"

#include "agent/text.h"

namespace collect::agent {
namespace {

HandshakeStep must_refuse(const char* reason,
                          collect_wire_RefuseCode code = collect_wire_RefuseCode_REFUSE_PROTOCOL) {
  return {HandshakeEvent::kRefuse, reason, code};
}
HandshakeStep must_break(const char* reason) {
  return {.event = HandshakeEvent::kBreak, .reason = reason};
}

}  // namespace

void Handshake::prepare(ProcessIdentity& identity, StreamTable& streams, Channel& control,
                        Channel& data) {
  identity_ = &identity;
  streams_ = &streams;
  control_ = &control;
  data_ = &data;
  collector_[0] = '\0';
}

HandshakeStep Handshake::send_hello(Channel& channel) {
  if (!identity_->draw_nonce(channel.nonces.agent)) return must_break(kNoRandomness);
  if (!channel.out.push(wire::FrameType::kHello, collect_wire_Hello_fields,
                        &identity_->hello(is_data(channel), channel.nonces.agent))) {
    return must_break("no room for a Hello");
  }
  return {};
}

bool Handshake::wants_frame(const Channel& channel) {
  return (channel.step == ChannelStep::kGreeting || channel.step == ChannelStep::kProving) &&
         !channel.challenged;
}

HandshakeStep Handshake::take(Channel& channel, const wire::Frame& frame) {
  const bool proved = channel.step == ChannelStep::kProving;
  switch (frame.type) {
    case wire::FrameType::kChallenge:
      if (proved) break;
      return challenged(channel, frame.body);
    case wire::FrameType::kWelcome:
      if (!proved) break;
      return welcomed(channel, frame.body);
    case wire::FrameType::kRefuse:
      return {.event = HandshakeEvent::kRefused};
    case wire::FrameType::kResume: {
      static collect_wire_Resume resume;  // 1.5 KiB; drain thread only
      if (!proved || !is_data(channel) ||
          !decode_message(frame.body, collect_wire_Resume_fields, &resume))
        break;
      for (pb_size_t i = 0; i < resume.positions_count; ++i) streams_->resume(resume.positions[i]);
      return {};
    }
    default:
      if (!wire::is_known(frame.type)) return {};
      break;
  }
  return must_refuse("not what a collector says before its Welcome");
}

HandshakeStep Handshake::challenged(Channel& channel, Bytes body) {
  collect_wire_RefuseCode code = collect_wire_RefuseCode_REFUSE_PROTOCOL;
  const char* const fault =
      identity_->judge_challenge(is_data(channel), channel.nonces, body, code);
  if (fault != nullptr) return must_refuse(fault, code);
  if (is_data(channel) && !control_->nonces.are_of_one_collector(channel.nonces)) {
    // A balancer that splits the pair, for example.
    return must_break("its address led to two collectors: it must lead to one");
  }
  channel.challenged = true;
  return {};
}

// The resume key comes with control's Welcome, and data has to prove that it is known.
bool Handshake::may_prove(const Channel& channel) const {
  return channel.challenged && (!is_data(channel) || control_->step == ChannelStep::kOpen);
}

HandshakeStep Handshake::send_proof(Channel& channel) {
  collect_wire_Proof proof;
  identity_->prove(is_data(channel), channel.nonces, proof);
  if (!channel.out.push(wire::FrameType::kProof, collect_wire_Proof_fields, &proof)) {
    return must_break("no room for a Proof");
  }
  channel.challenged = false;
  channel.step = ChannelStep::kProving;
  return {};
}

HandshakeStep Handshake::welcomed(Channel& channel, Bytes body) {
  collect_wire_Welcome welcome = collect_wire_Welcome_init_zero;
  if (!decode_message(body, collect_wire_Welcome_fields, &welcome)) {
    return must_refuse("the Welcome can't be read");
  }
  if (welcome.version != wire::kProtocolVersion ||
      (welcome.features & ~identity_->features()) != 0) {
    return must_refuse("the Welcome names a version or features that were not offered",
                       collect_wire_RefuseCode_REFUSE_VERSION);
  }
  const pb_size_t key_bytes = welcome.resume_key.size;
  if (key_bytes != 0 && (is_data(channel) || key_bytes != wire::kResumeKeyBytes)) {
    return must_refuse("the Welcome has a resume key where none belongs, or a part of one");
  }
  if (key_bytes != 0) identity_->keep_resume_key(channel.nonces, welcome.resume_key.bytes);
  channel.step = ChannelStep::kOpen;
  copy_printable(collector_, sizeof collector_, welcome.collector, sizeof welcome.collector);
  if (is_data(channel)) {
    resumed_ = welcome.resumed;
    features_ = welcome.features;
  } else {
    uint32_t interval = welcome.heartbeat_ms == 0 ? kDefaultHeartbeatMs : welcome.heartbeat_ms;
    if (interval < kMinHeartbeatMs) interval = kMinHeartbeatMs;
    if (interval > kMaxHeartbeatMs) interval = kMaxHeartbeatMs;
    heartbeat_ms_ = interval;
  }
  return {.event = HandshakeEvent::kWelcomed};
}

}  // namespace collect::agent
