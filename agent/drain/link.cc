#include "agent/drain/link.h"

#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/drain/status.h"
#include "agent/ring/recorder.h"
#include "agent/transport/tls.h"

namespace collect::agent {
namespace {}  // namespace

uint64_t monotonic_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000000000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t monotonic_ms() {
  return monotonic_ns() / 1000000;
}

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
  reason_[0] = collector_[0] = '\0';
  if (role_ == Role::kNone) return "no collector's address is set";
  identity_.prepare(settings);
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
  // may be somebody who took the collector's port for a while.
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
               "; going on as another one");
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
      heard(now_ms);
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
    heard(now_ms);
    set_status("connected to ", collector_[0] != '\0' ? collector_ : "a collector", " by ",
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
    unlink(
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

}  // namespace collect::agent
