#include "agent/drain/link/link.h"

#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/drain/link/status.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/platform/system.h"
#include "agent/ring/recorder.h"
#include "agent/transport/tls.h"

namespace collect::agent {
namespace {

// iOS takes the sockets of a suspended app away; what is left of them accepts nothing any more, and
// is always ready. Other errors are of the connection that was about to come, or pass.
bool is_dead_listener(int error) {
  return error == EINVAL || error == ENOTCONN || error == EOPNOTSUPP || error == ENOTSOCK ||
         error == EBADF;
}

constexpr char kServerAdvice[] =
    ": set COLLECT_TOKEN_FILE, or use the collector's Unix socket; trying again later";

}  // namespace

uint64_t retry_delay_ms(uint32_t attempt, uint64_t random) {
  uint64_t longest = kFirstRetryMs;
  for (uint32_t i = 0; i < attempt && longest < kLastRetryMs; ++i) longest *= 2;
  if (longest > kLastRetryMs) longest = kLastRetryMs;
  return longest / 2 + random % (longest / 2 + 1);
}

const char* Link::prepare(const Settings& settings, StreamTable& streams) {
  settings_ = &settings;
  streams_ = &streams;
  role_ = settings.role;
  reason_[0] = '\0';
  if (role_ == Role::kNone) return "no collector's address is set";
  identity_.prepare(settings);
  handshake_.prepare(identity_, streams, control_, data_);
  pending_.prepare(identity_, control_, data_);
  random_ = identity_.seed() | 1;
  down_since_ms_ = monotonic_ms();
  if (role_ == Role::kListen) return resolve_listen(settings.address, listen_on_);
  const char* const error = collectors_.prepare(settings.address);
  if (error != nullptr || !collectors_.any_wants_tls()) return error;
  return tls_prepare({settings.tls_ca, settings.tls_certificate, settings.tls_key});
}

uint64_t Link::random() {
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void Link::schedule(uint64_t now_ms) {
  retry_at_ms_ = now_ms + retry_delay_ms(attempt_, random());
  if (attempt_ < 32) ++attempt_;
}

void Link::close_pair() {
  for (Channel* channel : {&control_, &data_}) {
    channel->socket.close();
    channel->step = ChannelStep::kClosed;
    channel->challenged = false;
    channel->in.clear();
    channel->out.clear();
  }
}

void Link::break_link(uint64_t now_ms, const char* why) {
  const bool was_up = is_up();
  close_pair();
  came_up_ = false;
  if (was_up) {
    down_since_ms_ = now_ms;
    if (now_ms - up_since_ms_ >= kStableMs) attempt_ = 0;
    schedule(now_ms);
  } else if (role_ == Role::kConnect) {
    go_on(now_ms, collectors_.try_next_collector());
  } else {
    ++rounds_failed_;
    schedule(now_ms);
  }
  if (!given_up_ && !end_expected_) {
    set_status(was_up ? "the link to the collector broke: " : "no link to the collector: ", why,
               role_ == Role::kConnect ? "; trying again" : "; listening for the next");
  }
}

void Link::refuse(uint64_t now_ms, Channel& channel, collect_wire_RefuseCode code,
                  const char* reason) {
  turn_away(channel.socket, code, reason, true);
  break_link(now_ms, reason);
}

void Link::take_reason(const collect_wire_Refuse& refuse) {
  // It is shown on terminals: nothing but text.
  copy_printable(reason_, sizeof reason_, refuse.reason, sizeof refuse.reason);
}

void Link::refused(uint64_t now_ms, const Channel& channel, Bytes body) {
  const ChannelStep step = channel.step;
  const bool was_up = is_up();
  collect_wire_Refuse refuse = collect_wire_Refuse_init_zero;
  if (!decode_message(body, collect_wire_Refuse_fields, &refuse)) {
    break_link(now_ms, "a refusal that can't be read");
    return;
  }
  take_reason(refuse);
  const auto code = enum_number(refuse.code);
  const bool is_another =
      step == ChannelStep::kProving && code == collect_wire_RefuseCode_REFUSE_RESUME;
  // Another collector may come to one that listens; and what has not shown that it knows the token
  // may be someone who took the collector's port for a while.
  const bool is_known = step == ChannelStep::kProving || step == ChannelStep::kOpen;
  const bool is_final = role_ == Role::kConnect && !is_another && !refuse.retry &&
                        (is_known || !identity_.has_token());
  if (is_final) {
    collectors_.refused_for_good();
    given_up_ = code == collect_wire_RefuseCode_REFUSE_DETACHED || collectors_.is_hopeless();
  }
  break_link(now_ms, "the collector refused it");
  if (was_up) try_another(now_ms);
  if (is_another) {
    identity_.become_another();
    set_status("the collector does not take it for the process that it was: ", reason_,
               "; continuing as another one");
    return;
  }
  set_status("refused by the collector: ", reason_,
             is_final ? "; not tried again" : "; trying again later");
}

void Link::collector_leaves(uint64_t now_ms, bool will_return) {
  const bool was_up = is_up();
  break_link(now_ms, will_return ? "the collector stops, and will be back"
                                 : "the collector stops for good");
  if (will_return) {
    returns_until_ms_ = now_ms + kReturnMs;
    return;
  }
  if (role_ != Role::kConnect) return;
  if (settings_->spool[0] == '\0') {
    collectors_.left_for_good();
    given_up_ = collectors_.is_hopeless();
  }
  if (given_up_) {
    set_status("the collector stops for good; not tried again");
  } else if (was_up) {
    try_another(now_ms);
  }
}

// Where there is one, without a pause.
void Link::try_another(uint64_t now_ms) {
  if (role_ == Role::kConnect && !collectors_.try_next_collector()) retry_at_ms_ = now_ms;
}

bool Link::read(uint64_t now_ms, Channel& channel) {
  switch (channel.in.fill(channel.socket)) {
    case IoStatus::kDone:
      note_received(now_ms);
      return true;
    case IoStatus::kAgain:
      return true;
    case IoStatus::kEnd:
      break_link(now_ms, "the collector closed it");
      return false;
    case IoStatus::kLost:
      break_link(now_ms, "the program closed its descriptor");
      return false;
    case IoStatus::kError:
      break;
  }
  break_link(now_ms, channel.socket.fault_or("it can't be read"));
  return false;
}

bool Link::next_frame(uint64_t now_ms, Channel& channel, wire::Frame& frame) {
  if (channel.step == ChannelStep::kClosed) return false;
  const wire::Decoded decoded = channel.in.next(frame);
  if (decoded.status == wire::DecodeStatus::kBad) {
    refuse(now_ms, channel, collect_wire_RefuseCode_REFUSE_PROTOCOL,
           wire::frame_error_text(decoded.error));
    return false;
  }
  if (decoded.status == wire::DecodeStatus::kNeedMore) {
    // Pages never come this way, so every frame fits the buffer.
    if (decoded.need_bytes > kFrameBufferBytes) {
      refuse(now_ms, channel, collect_wire_RefuseCode_REFUSE_PROTOCOL,
             "a collector does not send pages");
    }
    return false;
  }
  channel.in.consume(frame);
  return true;
}

bool Link::flush(uint64_t now_ms, Channel& channel) {
  switch (channel.out.flush(channel.socket)) {
    case IoStatus::kDone:
    case IoStatus::kAgain:
      return true;
    case IoStatus::kLost:
      break_link(now_ms, "the program closed its descriptor");
      return false;
    case IoStatus::kEnd:
      break_link(now_ms, "the collector closed it");
      return false;
    case IoStatus::kError:
      break;
  }
  break_link(now_ms, channel.socket.fault_or("it can't be written"));
  return false;
}

bool Link::take_came_up() {
  const bool came_up = came_up_;
  came_up_ = false;
  return came_up;
}

bool Link::is_opening() const {
  if (given_up_ || is_up()) return false;
  if (control_.step != ChannelStep::kClosed || data_.step != ChannelStep::kClosed) return true;
  return pending_.any();
}

void Link::step(uint64_t now_ms) {
  if (given_up_) return;
  if (role_ == Role::kConnect) step_connect(now_ms);
  if (role_ == Role::kListen) step_listen(now_ms);
  const bool was_up = is_up();
  for (Channel* channel : {&control_, &data_}) {
    if (channel->step == ChannelStep::kGreeting || channel->step == ChannelStep::kProving) {
      step_greeting(now_ms, *channel);
    }
  }
  if (!was_up && is_up()) {
    came_up_ = true;
    up_since_ms_ = now_ms;
    rounds_failed_ = 0;
    collectors_.came_up();
    note_received(now_ms);
    const char* const collector = handshake_.collector();
    set_status("connected to ", collector[0] != '\0' ? collector : "a collector", " by ",
               role_ == Role::kConnect ? collectors_.text() : settings_->address);
  }
  // One half alone is no link.
  for (Channel* channel : {&control_, &data_}) {
    if (!is_up() && channel->step != ChannelStep::kClosed && now_ms >= channel->deadline_ms) {
      break_link(now_ms, "the handshake took too long");
    }
  }
}

void Link::shut(bool ours) {
  close_pair();
  pending_.close();
  if (ours && unlink_path_ && listener_.is_ours()) {
    sys::unlink(
        reinterpret_cast<const sockaddr_un*>(&listen_on_.items[listening_on_].storage)->sun_path);
  }
  listener_.close();
}

size_t Link::fill_poll(pollfd* out, uint64_t now_ms, bool data_wants_out) {
  size_t count = 0;
  for (Channel* channel : {&control_, &data_}) {
    if (channel->step == ChannelStep::kClosed) continue;
    const bool connecting = channel->step == ChannelStep::kConnecting;
    const bool wants_out =
        connecting || !channel->out.is_empty() || (is_data(*channel) && data_wants_out);
    short events = wants_out ? POLLOUT : 0;
    if (!connecting) events = static_cast<short>(events | POLLIN);
    out[count++] = {channel->socket.fd(), channel->socket.poll_events(events), 0};
  }
  count += pending_.fill_poll(out + count);
  if (listener_.is_open() && now_ms >= accept_at_ms_) {
    out[count++] = {listener_.fd(), POLLIN, 0};
  }
  return count;
}

// ---- connecting

void Link::step_connect(uint64_t now_ms) {
  if (control_.step == ChannelStep::kClosed && data_.step == ChannelStep::kClosed) {
    if (now_ms >= retry_at_ms_) begin_connect(now_ms, control_);
  }
  for (Channel* channel : {&control_, &data_}) {
    if (channel->step == ChannelStep::kConnecting) watch_connect(now_ms, *channel);
  }
}

void Link::begin_connect(uint64_t now_ms, Channel& channel) {
  if (!identity_.read_token()) {
    break_link(now_ms, kNoToken);
    return;
  }
  bool connected = false;
  const int error = channel.socket.connect(collectors_.address(), &connected);
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
  if (sys::poll(&waiting, 1, 0) <= 0) return;
  const int error = channel.socket.finish_connect();
  if (error != 0) {
    connect_failed(now_ms, error);
    return;
  }
  greet(now_ms, channel);
}

void Link::connect_failed(uint64_t now_ms, int error) {
  set_status("no collector at ", collectors_.text(), ": ", errno_text(error));
  close_pair();
  go_on(now_ms, collectors_.try_next_address());
}

// The other addresses are tried without a pause.
void Link::go_on(uint64_t now_ms, bool is_round_over) {
  if (is_round_over) {
    ++rounds_failed_;
    schedule(now_ms);
  } else {
    retry_at_ms_ = now_ms;
  }
}

// Someone else's program may hold the port while no collector runs. A certificate says who it is,
// and so does the proof of a token; else the user who serves it must be one of ours.
bool Link::is_served_by_ours(uint64_t now_ms, const Channel& channel) {
  if (collectors_.wants_tls() || identity_.has_token()) return true;
  const Server server = channel.socket.server(collectors_.address());
  if (server.user == PeerUser::kTrusted || server.user == PeerUser::kCannotAsk) return true;
  if (server.user == PeerUser::kNotAsked) {
    connect_failed(now_ms, EMFILE);
    return false;
  }
  char whose[64] = " is served by a user whom the system does not name";
  if (server.user == PeerUser::kOther) {
    Text(whose, sizeof whose).add(" is served by uid ").number(server.uid).add(", another user");
  }
  set_status(collectors_.text(), whose, kServerAdvice);
  close_pair();
  go_on(now_ms, collectors_.try_next_address());
  return false;
}

// ---- listening

void Link::step_listen(uint64_t now_ms) {
  if (listener_.is_open() && !listener_.is_ours()) listener_.close();
  if (!listener_.is_open() && (now_ms < retry_at_ms_ || !open_listener(now_ms))) return;
  if (now_ms >= accept_at_ms_) accept_waiting(now_ms);
  const bool had_data = data_.step != ChannelStep::kClosed;
  pending_.step(now_ms);
  if (!had_data && data_.step != ChannelStep::kClosed) data_begins();
}

bool Link::open_listener(uint64_t now_ms) {
  int error = 0;
  for (uint32_t i = 0; i < listen_on_.count; ++i) {
    error = listener_.listen(listen_on_.items[i]);
    if (error != 0) continue;
    listening_on_ = i;
    listen_port_ = listener_.local_port();
    const Address& address = listen_on_.items[i];
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
  for (uint32_t i = 0; i < kMaxPending; ++i) {
    Socket accepted;
    const int error = listener_.accept(accepted, settings_->token_file[0] != '\0');
    if (error == EACCES) {
      if (now_ms >= log_refused_user_at_ms_) {
        log_line("turned away a user that may not trace this process, or is unknown (AGENT.md)");
        log_refused_user_at_ms_ = now_ms + kRefusedUserLogMs;
      }
      continue;
    }
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
      accept_at_ms_ = now_ms + kAcceptPauseMs;
    }
    if (is_dead_listener(error)) {
      listener_.close();
      schedule(now_ms);
      set_status("the system ended the listener on ", settings_->address, "; listening again");
    }
    if (error != 0) return;
    pending_.add(now_ms, accepted);
  }
}

// ---- the handshake of a channel, up to Welcome

void Link::data_begins() {
  streams_->begin_handshake();
  data_.socket.widen_send_buffer();
}

void Link::greet(uint64_t now_ms, Channel& channel) {
  if (!is_served_by_ours(now_ms, channel)) return;
  channel.step = ChannelStep::kGreeting;
  if (collectors_.wants_tls()) {
    char host[kMaxAddress];
    (void)host_of_tls(collectors_.text(), host);  // prepare() has read it
    if (!channel.socket.start_tls(host)) {
      break_link(now_ms, "no memory for TLS");
      return;
    }
  }
  if (is_data(channel)) data_begins();
  send_handshake(now_ms, channel, handshake_.send_hello(channel));
}

void Link::send_handshake(uint64_t now_ms, Channel& channel, const HandshakeStep& step) {
  if (step.event == HandshakeEvent::kBreak) {
    break_link(now_ms, step.reason);
  } else {
    (void)flush(now_ms, channel);
  }
}

void Link::step_greeting(uint64_t now_ms, Channel& channel) {
  if (!flush(now_ms, channel) || !read(now_ms, channel)) return;
  wire::Frame frame;
  while (Handshake::wants_frame(channel) && next_frame(now_ms, channel, frame)) {
    take_greeting_frame(now_ms, channel, frame);
  }
  if (handshake_.may_prove(channel)) {
    send_handshake(now_ms, channel, handshake_.send_proof(channel));
  }
}

void Link::take_greeting_frame(uint64_t now_ms, Channel& channel, const wire::Frame& frame) {
  const HandshakeStep step = handshake_.take(channel, frame);
  switch (step.event) {
    case HandshakeEvent::kNone:
      return;
    case HandshakeEvent::kRefuse:
      refuse(now_ms, channel, step.code, step.reason);
      return;
    case HandshakeEvent::kBreak:
      break_link(now_ms, step.reason);
      return;
    case HandshakeEvent::kRefused:
      refused(now_ms, channel, frame.body);
      return;
    case HandshakeEvent::kWelcomed:
      break;
  }
  if (is_data(channel) || data_.step != ChannelStep::kClosed) return;
  channel.deadline_ms = now_ms + kPairMs;
  if (role_ == Role::kConnect)
    begin_connect(now_ms, data_);  // now, not when someone wakes us again
}

}  // namespace collect::agent
