// Sends the live state to every page that is open: at once when it is opened, then whenever it has
// changed, at most once per kLiveInterval. While no page is open nothing is asked of the collector.
//
// Everything on the thread of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <atomic>
#include <chrono>
#include <set>
#include <string>

#include "daemon/web/web_content.h"

namespace collect::web {

// Bytes of text/event-stream; the newest state replaces one that is not sent yet.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual void send_event(const std::string& bytes) = 0;
};

class LiveFeed {
 public:
  // `content` outlives it.
  LiveFeed(asio::io_context& io, WebContent& content) : content_(content), timer_(io) {}

  bool has_room() const;
  // `stream` stays until it is removed.
  void add(EventStream& stream);
  void remove(EventStream& stream);
  // The state as JSON, now.
  std::string look() { return content_.look(); }
  // How many there are. Any thread.
  size_t streams() const { return count_.load(std::memory_order_relaxed); }

 private:
  void wait();
  void tick();

  WebContent& content_;
  asio::steady_timer timer_;
  std::set<EventStream*> streams_;
  std::atomic<size_t> count_{0};  // of them
  std::string last_;
  std::chrono::steady_clock::time_point sent_at_;
};

}  // namespace collect::web
