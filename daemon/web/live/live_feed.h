// Sends the live state to every page that is open: at once when it is opened, then whenever it has
// changed, at most once per kLiveInterval. While no page is open nothing is asked of the collector.
//
// Everything on the thread of the io_context.
#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <set>
#include <string>

#include "daemon/web/live/live_view.h"

namespace collect::web {

// Bytes of text/event-stream; the newest state replaces one that is not sent yet.
class EventStream {
 public:
  virtual ~EventStream() = default;
  virtual void send_event(const std::string& bytes) = 0;
};

class LiveFeed {
 public:
  LiveFeed(asio::io_context& io, control::CollectorApi& collector) : view_(collector), timer_(io) {}

  bool has_room() const;
  // `stream` stays until it is removed.
  void add(EventStream& stream);
  void remove(EventStream& stream);
  // The state as JSON, now.
  std::string look() { return view_.look(LiveView::Clock::now()); }

 private:
  void wait();
  void tick();

  LiveView view_;
  asio::steady_timer timer_;
  std::set<EventStream*> streams_;
  std::string last_;
  LiveView::Clock::time_point sent_at_;
};

}  // namespace collect::web
