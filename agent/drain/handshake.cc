// Link's beginnings: connecting or being dialled, Hello, Welcome.
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "agent/crc32c.h"
#include "agent/drain/link.h"
#include "agent/drain/status.h"
#include "agent/ring/recorder.h"

namespace collect::agent {
namespace {

// iOS takes the sockets of a suspended app away; what is left of them accepts nothing any more, and
// is always ready. Other errors are of the connection that was about to come, or pass.
bool is_dead_listener(int error) {
  return error == EINVAL || error == ENOTCONN || error == EOPNOTSUPP || error == ENOTSOCK ||
         error == EBADF;
}

}  // namespace

// ---- connecting

void Link::step_connect(uint64_t now_ms) {
  if (control_.step == ChannelStep::kClosed && data_.step == ChannelStep::kClosed) {
    if (now_ms >= retry_at_ms_) begin_connect(now_ms, control_);
  } else if (control_.step == ChannelStep::kOpen && data_.step == ChannelStep::kClosed) {
    begin_connect(now_ms, data_);
  }
  for (Channel* channel : {&control_, &data_}) {
    if (channel->step == ChannelStep::kConnecting) watch_connect(now_ms, *channel);
  }
}

void Link::begin_connect(uint64_t now_ms, Channel& channel) {
  read_token(*settings_, token_);
  if (token_.wanted && !token_.readable) {
    break_link(now_ms, "the token file can't be read, or holds no token of 1 to 256 bytes");
    return;
  }
  bool connected = false;
  const int error = channel.socket.connect(addresses_.items[address_], &connected);
  if (error != 0) {
    connect_failed(now_ms, error);
    return;
  }
  channel.step = ChannelStep::kConnecting;
  channel.deadline_ms = now_ms + (is_data(channel) ? kPairMs : kHandshakeMs);
  if (connected) greet(now_ms, channel);
}

void Link::watch_connect(uint64_t now_ms, Channel& channel) {
  pollfd waiting{channel.socket.fd(), POLLOUT, 0};
  if (poll(&waiting, 1, 0) <= 0) return;
  const int error = channel.socket.finish_connect();
  if (error != 0) {
    connect_failed(now_ms, error);
    return;
  }
  greet(now_ms, channel);
}

void Link::connect_failed(uint64_t now_ms, int error) {
  address_ = (address_ + 1) % addresses_.count;
  if (address_ == 0) ++rounds_failed_;
  close_pair();
  // The other addresses of a name are tried without a pause.
  if (address_ == 0) {
    schedule(now_ms);
  } else {
    retry_at_ms_ = now_ms;
  }
  set_status("no collector at ", settings_->address, ": ", errno_text(error));
}

// ---- listening

void Link::step_listen(uint64_t now_ms) {
  if (listener_.is_open() && !listener_.is_ours()) listener_.close();
  if (!listener_.is_open() && (now_ms < retry_at_ms_ || !open_listener(now_ms))) return;
  if (now_ms >= accept_at_ms_) accept_waiting(now_ms);
  for (Pending& pending : pending_) {
    if (pending.socket.is_open()) step_pending(now_ms, pending);
  }
}

bool Link::open_listener(uint64_t now_ms) {
  int error = 0;
  for (uint32_t i = 0; i < addresses_.count; ++i) {
    error = listener_.listen(addresses_.items[i]);
    if (error != 0) continue;
    listening_on_ = i;
    listen_port_ = listener_.local_port();
    const Address& address = addresses_.items[i];
    unlink_path_ = address.is_local() &&
                   reinterpret_cast<const sockaddr_un*>(&address.storage)->sun_path[0] != '\0';
    attempt_ = 0;
    say_waiting();
    return true;
  }
  schedule(now_ms);
  set_status("can't listen on ", settings_->address, ": ", errno_text(error));
  return false;
}

void Link::say_waiting() {
  char port[32] = "";
  if (listen_port_ != 0) Text(port, sizeof port).add(" (port ").number(listen_port_).add(")");
  set_status("waiting for a collector on ", settings_->address, port);
}

void Link::accept_waiting(uint64_t now_ms) {
  for (Pending& pending : pending_) {
    if (pending.socket.is_open()) continue;
    const int error = listener_.accept(pending.socket);
    if (error == EACCES) log_line("turned away a user that may not trace this process");
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
      accept_at_ms_ = now_ms + kAcceptPauseMs;
    }
    if (is_dead_listener(error)) {
      listener_.close();
      schedule(now_ms);
      set_status("the system ended the listener on ", settings_->address, "; listening again");
    }
    if (error != 0) return;
    pending.deadline_ms = now_ms + kHandshakeMs;
    pending.used = 0;
  }
}

void Link::turn_away(Socket& socket, collect_wire_RefuseCode code, const char* reason, bool retry) {
  collect_wire_Refuse refuse = collect_wire_Refuse_init_zero;
  refuse.code = code;
  refuse.retry = retry;
  copy_utf8(refuse.reason, sizeof refuse.reason, reason, sizeof refuse.reason);
  uint8_t bytes[sizeof(wire::FrameHeader) + collect_wire_Refuse_size];
  const size_t size = encode_frame(MutableBytes(bytes, sizeof bytes), wire::FrameType::kRefuse,
                                   collect_wire_Refuse_fields, &refuse);
  const iovec part{bytes, size};
  // Best effort: a peer that does not read loses the reason, and the connection all the same.
  if (size != 0) (void)socket.send(&part, 1);
  socket.close();
}

void Link::step_pending(uint64_t now_ms, Pending& pending) {
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
    dialled(now_ms, pending, frame);
  } else if (decoded.need_bytes > sizeof pending.bytes) {
    turn_away(pending.socket, collect_wire_RefuseCode_REFUSE_PROTOCOL,
              "the first frame is not a Dial", true);
  } else if (now_ms >= pending.deadline_ms) {
    turn_away(pending.socket, collect_wire_RefuseCode_REFUSE_PROTOCOL, "no Dial in time", true);
  }
}

void Link::dialled(uint64_t now_ms, Pending& pending, const wire::Frame& frame) {
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
              "this agent speaks version 1 of the protocol only", false);
    return;
  }
  read_token(*settings_, token_);
  if (token_.wanted && (!token_.readable || !tokens_equal(Bytes(dial.token.bytes, dial.token.size),
                                                          Bytes(token_.bytes, token_.size)))) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_TOKEN, "the token is missing or wrong", false);
    log_line("turned away a collector without the right token");
    return;
  }
  const bool is_control = wanted == collect_wire_Channel_CHANNEL_CONTROL;
  Channel& channel = is_control ? control_ : data_;
  if (channel.step != ChannelStep::kClosed) {
    turn_away(socket, collect_wire_RefuseCode_REFUSE_DUPLICATE,
              "this process is served by a collector already", true);
    return;
  }
  channel.socket = socket;
  socket = Socket{};
  channel.in.take(Bytes(pending.bytes + frame.frame_bytes, pending.used - frame.frame_bytes));
  channel.deadline_ms = now_ms + kPairMs;
  greet(now_ms, channel);
}

// ---- both

void Link::greet(uint64_t now_ms, Channel& channel) {
  channel.step = ChannelStep::kGreeting;
  if (tls_ && !channel.socket.start_tls()) {
    break_link(now_ms, "no memory for TLS");
    return;
  }
  if (is_data(channel)) {
    streams_->begin_handshake();
    channel.socket.widen_send_buffer();
  }
  if (send_hello(now_ms, channel)) (void)flush(now_ms, channel);
}

bool Link::send_hello(uint64_t now_ms, Channel& channel) {
  hello_.channel =
      is_data(channel) ? collect_wire_Channel_CHANNEL_DATA : collect_wire_Channel_CHANNEL_CONTROL;
  // Only an agent that connects has to prove itself: a collector that dials has chosen the agent.
  hello_.token.size = 0;
  if (role_ == Role::kConnect && token_.readable) {
    std::memcpy(hello_.token.bytes, token_.bytes, token_.size);
    hello_.token.size = static_cast<pb_size_t>(token_.size);
  }
  hello_.recording = current_recording();
  hello_.is_recording = is_recording();
  hello_.detail = static_cast<collect_wire_DetailMode>(detail_mode());
  hello_.buffer_bytes = recorder_stats().buffer_bytes;
  if (channel.out.push(wire::FrameType::kHello, collect_wire_Hello_fields, &hello_)) return true;
  break_link(now_ms, "no room for a Hello");
  return false;
}

void Link::step_greeting(uint64_t now_ms, Channel& channel) {
  if (!flush(now_ms, channel) || !read(now_ms, channel)) return;
  wire::Frame frame;
  while (channel.step == ChannelStep::kGreeting && next_frame(now_ms, channel, frame)) {
    take_greeting_frame(now_ms, channel, frame);
  }
}

void Link::take_greeting_frame(uint64_t now_ms, Channel& channel, const wire::Frame& frame) {
  switch (frame.type) {
    case wire::FrameType::kWelcome:
      welcomed(now_ms, channel, frame.body);
      return;
    case wire::FrameType::kRefuse:
      refused(now_ms, frame.body);
      return;
    case wire::FrameType::kResume: {
      static collect_wire_Resume resume;  // 1.5 KiB; drain thread only
      if (!is_data(channel) || !decode_message(frame.body, collect_wire_Resume_fields, &resume))
        break;
      for (pb_size_t i = 0; i < resume.positions_count; ++i) streams_->resume(resume.positions[i]);
      return;
    }
    default:
      if (!is_known_type(frame.type)) return;
      break;
  }
  refuse(now_ms, channel, collect_wire_RefuseCode_REFUSE_PROTOCOL,
         "not what a collector says before its Welcome");
}

void Link::welcomed(uint64_t now_ms, Channel& channel, Bytes body) {
  collect_wire_Welcome welcome = collect_wire_Welcome_init_zero;
  if (!decode_message(body, collect_wire_Welcome_fields, &welcome)) {
    refuse(now_ms, channel, collect_wire_RefuseCode_REFUSE_PROTOCOL, "the Welcome can't be read");
    return;
  }
  if (welcome.version != wire::kProtocolVersion || (welcome.features & ~hello_.features) != 0) {
    refuse(now_ms, channel, collect_wire_RefuseCode_REFUSE_VERSION,
           "the Welcome names a version or features that were not offered");
    return;
  }
  channel.step = ChannelStep::kOpen;
  copy_utf8(collector_, sizeof collector_, welcome.collector, sizeof welcome.collector);
  if (is_data(channel)) {
    resumed_ = welcome.resumed;
    features_ = welcome.features;
    return;
  }
  uint32_t interval = welcome.heartbeat_ms == 0 ? kDefaultHeartbeatMs : welcome.heartbeat_ms;
  if (interval < kMinHeartbeatMs) interval = kMinHeartbeatMs;
  if (interval > kMaxHeartbeatMs) interval = kMaxHeartbeatMs;
  heartbeat_ms_ = interval;
  if (data_.step == ChannelStep::kClosed) channel.deadline_ms = now_ms + kPairMs;
}

}  // namespace collect::agent
