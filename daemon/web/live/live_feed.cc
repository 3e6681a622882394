#include "daemon/web/live/live_feed.h"

#include <fmt/core.h>

#include "daemon/web/limits.h"

namespace collect::web {
namespace {

std::string event_of(const std::string& json) {
  return fmt::format("event: state\ndata: {}\n\n", json);
}

}  // namespace

bool LiveFeed::has_room() const {
  return streams_.size() < kMaxStreams;
}

void LiveFeed::add(EventStream& stream) {
  const bool is_first = streams_.empty();
  streams_.insert(&stream);
  count_ = streams_.size();
  last_ = look();
  sent_at_ = std::chrono::steady_clock::now();
  stream.send_event(event_of(last_));
  if (is_first) wait();
}

void LiveFeed::remove(EventStream& stream) {
  streams_.erase(&stream);
  count_ = streams_.size();
  if (streams_.empty()) timer_.cancel();
}

void LiveFeed::wait() {
  timer_.expires_after(kLiveInterval);
  timer_.async_wait([this](const std::error_code& error) {
    if (error || streams_.empty()) return;
    tick();
    wait();
  });
}

void LiveFeed::tick() {
  std::string state = look();
  const auto now = std::chrono::steady_clock::now();
  std::string bytes;
  if (state != last_) {
    bytes = event_of(state);
    last_ = std::move(state);
  } else if (now - sent_at_ >= kStreamSignOfLife) {
    bytes = ":\n\n";
  } else {
    return;
  }
  sent_at_ = now;
  for (EventStream* stream : streams_) stream->send_event(bytes);
}

}  // namespace collect::web
