#include "agent/drain/link/pending_connections.h"

#include <cstring>

#include "agent/crc32c.h"
#include "agent/drain/link/status.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

constexpr char kServed[] = "this process is served by a collector already";

}  // namespace

void PendingConnections::prepare(ProcessIdentity& identity, Channel& control, Channel& data) {
  identity_ = &identity;
  control_ = &control;
  data_ = &data;
}

// A collector says Dial as soon as it is connected: so the one that has been silent longest goes,
// and not the newcomer.
void PendingConnections::add(uint64_t now_ms, const Socket& accepted) {
  Pending* slot = &pending_[0];
  for (Pending& pending : pending_) {
    if (!pending.socket.is_open()) {
      slot = &pending;
      break;
    }
    if (pending.deadline_ms < slot->deadline_ms) slot = &pending;
  }
  slot->socket.close();
  slot->socket = accepted;
  slot->deadline_ms = now_ms + kHandshakeMs;
  slot->used = 0;
  slot->greeted = false;
}

bool PendingConnections::any() const {
  for (const Pending& pending : pending_) {
    if (pending.socket.is_open()) return true;
  }
  return false;
}

void PendingConnections::close() {
  for (Pending& pending : pending_) pending.socket.close();
}

size_t PendingConnections::fill_poll(pollfd* out) const {
  size_t count = 0;
  for (const Pending& pending : pending_) {
    if (pending.socket.is_open()) out[count++] = {pending.socket.fd(), POLLIN, 0};
  }
  return count;
}

void PendingConnections::step(uint64_t now_ms) {
  for (Pending& pending : pending_) {
    if (pending.socket.is_open()) step_one(now_ms, pending);
  }
}

void PendingConnections::step_one(uint64_t now_ms, Pending& pending) {
  const IoResult got =
      pending.socket.receive(pending.bytes + pending.used, sizeof pending.bytes - pending.used);
  if (got.status == IoStatus::kDone) pending.used += got.bytes;
  if (got.status != IoStatus::kDone && got.status != IoStatus::kAgain) {
    pending.socket.close();
    return;
  }
  wire::Frame frame;
  const wire::Decoded decoded =
      wire::decode_frame(Bytes(pending.bytes, pending.used), crc32c, frame);
  if (decoded.status == wire::DecodeStatus::kBad) {
    turn_away(pending.socket, collect_wire_RefuseCode_REFUSE_PROTOCOL,
              wire::frame_error_text(decoded.error), true);
  } else if (decoded.status == wire::DecodeStatus::kFrame) {
    if (pending.greeted) {
      answered(now_ms, pending, frame);
    } else {
      dialled(pending, frame);
    }
  } else if (decoded.need_bytes > sizeof pending.bytes) {
    turn_away(
        pending.socket, collect_wire_RefuseCode_REFUSE_PROTOCOL,
        pending.greeted ? "a Challenge is not as long as that" : "the first frame is not a Dial",
        true);
  } else if (now_ms >= pending.deadline_ms) {
    turn_away(pending.socket, collect_wire_RefuseCode_REFUSE_PROTOCOL,
              pending.greeted ? "no Challenge in time" : "no Dial in time", true);
  }
}

void PendingConnections::dialled(Pending& pending, const wire::Frame& frame) {
  collect_wire_Dial dial = collect_wire_Dial_init_zero;
  Socket& socket = pending.socket;
  const bool is_dial = frame.type == wire::FrameType::kDial &&
                       decode_message(frame.body, collect_wire_Dial_fields, &dial);
  const uint32_t wanted = enum_number(dial.channel);
  if (!is_dial || (wanted != collect_wire_Channel_CHANNEL_CONTROL &&
                   wanted != collect_wire_Channel_CHANNEL_DATA)) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_PROTOCOL, "the first frame is not a Dial",
              true);
    return;
  }
  if (dial.min_version > wire::kProtocolVersion || dial.max_version < wire::kProtocolVersion) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_VERSION,
              "this agent speaks version 2 of the protocol only", false);
    return;
  }
  if (!identity_->read_token()) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_TOKEN, kNoToken, true);
    log_line(kNoToken);
    return;
  }
  pending.is_data = wanted == collect_wire_Channel_CHANNEL_DATA;
  if (channel_of(pending).step != ChannelStep::kClosed) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_DUPLICATE, kServed, true);
    return;
  }
  if (!identity_->draw_nonce(pending.nonces.agent)) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_LIMIT, kNoRandomness, true);
    log_line(kNoRandomness);
    return;
  }
  pending.used -= frame.frame_bytes;
  std::memmove(pending.bytes, pending.bytes + frame.frame_bytes, pending.used);
  uint8_t bytes[sizeof(wire::FrameHeader) + collect_wire_Hello_size];
  const size_t size = encode_frame(MutableBytes(bytes, sizeof bytes), wire::FrameType::kHello,
                                   collect_wire_Hello_fields,
                                   &identity_->hello(pending.is_data, pending.nonces.agent));
  const iovec part{bytes, size};
  const IoResult sent = socket.send(&part, 1);
  // Nothing was sent on it yet, so there is room; if not, the next dial is a new chance.
  if (size == 0 || sent.status != IoStatus::kDone || sent.bytes != size) {
    socket.close();
    return;
  }
  pending.greeted = true;
}

void PendingConnections::answered(uint64_t now_ms, Pending& pending, const wire::Frame& frame) {
  Socket& socket = pending.socket;
  if (frame.type == wire::FrameType::kRefuse) {
    collect_wire_Refuse refuse = collect_wire_Refuse_init_zero;
    const bool is_up = control_->step == ChannelStep::kOpen && data_->step == ChannelStep::kOpen;
    if (!is_up && decode_message(frame.body, collect_wire_Refuse_fields, &refuse)) {
      char reason[sizeof refuse.reason];
      copy_printable(reason, sizeof reason, refuse.reason, sizeof refuse.reason);
      set_status("refused by the collector: ", reason, "; trying again later");
    }
    socket.close();
    return;
  }
  if (frame.type != wire::FrameType::kChallenge) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_PROTOCOL,
              "not what a collector says before its Challenge", true);
    return;
  }
  collect_wire_RefuseCode code = collect_wire_RefuseCode_REFUSE_PROTOCOL;
  const char* const fault =
      identity_->judge_challenge(pending.is_data, pending.nonces, frame.body, code);
  if (fault != nullptr) {
    turn_away(socket, code, fault, true);
    log_line(fault);
    return;
  }
  Channel& channel = channel_of(pending);
  if (channel.step != ChannelStep::kClosed) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_DUPLICATE, kServed, true);
    return;
  }
  channel.socket = socket;
  socket = Socket{};
  channel.nonces = pending.nonces;
  channel.in.take(Bytes(pending.bytes, pending.used));
  channel.deadline_ms = now_ms + kPairMs;
  channel.step = ChannelStep::kGreeting;
}

}  // namespace collect::agent
