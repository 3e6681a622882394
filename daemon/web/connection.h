// One connection of a browser: reads a request, has it answered, sends the answer, and reads the
// next one. A request for live events makes it a stream until the browser leaves.
//
// Lives on the server's thread. What it waits for always ends: each state has a deadline
// (limits.h). The server owns it; handlers keep it until they have run.
#pragma once

#include <array>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "daemon/principal/principal.h"
#include "daemon/web/http/http_answer.h"
#include "daemon/web/http/http_request.h"
#include "daemon/web/limits.h"
#include "daemon/web/live/live_feed.h"
#include "daemon/web/routes.h"

namespace collect::web {

// Brings work to the server's thread from any other, until the server stops.
class Mailbox {
 public:
  explicit Mailbox(asio::io_context& io) : io_(&io) {}
  void post(std::function<void()> work);
  void close();  // what is posted from now on goes nowhere

 private:
  std::mutex mutex_;
  asio::io_context* io_;  // guarded by mutex_
};

class Connection final : public EventStream, public std::enable_shared_from_this<Connection> {
 public:
  // What it needs of the server; all of it outlives the connection.
  struct Server {
    std::function<void(const HttpRequest&, PageMaker::Cancelled, AnswerTo)> serve;
    LiveFeed& feed;
    std::shared_ptr<Mailbox> mailbox;
    std::function<void(Connection&)> on_closed;  // once
  };

  // `refusal`: why this user may not connect, which is all that it is answered; empty: it may.
  Connection(const Server& server, asio::ip::tcp::socket socket, principal::Principal principal,
             std::string refusal);

  void start();
  void close();
  void send_event(const std::string& bytes) override;

  const principal::Principal& principal() const { return principal_; }
  bool is_refused() const { return !refusal_.empty(); }
  // Nothing is being answered: it may be closed for a newer connection.
  bool is_idle() const { return state_ == State::kReading; }

 private:
  enum class State : uint8_t { kReading, kAnswering, kWriting, kStreaming, kDraining, kClosed };

  void read();
  void take(std::string_view bytes);
  void serve();
  void watch_for_end();
  void answer(HttpAnswer answer);
  void write();
  void written();
  void stream();
  void write_event();
  void drain();
  void expire_after(std::chrono::milliseconds time);
  void on_deadline();

  const Server& server_;
  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  const principal::Principal principal_;
  const std::string refusal_;
  State state_ = State::kReading;
  HttpReader reader_;
  std::array<char, kReadBytes> block_;
  std::string unread_;  // of `block_`, behind the request that is being answered
  uint64_t request_number_ = 0;
  PageMaker::Cancelled cancelled_;
  bool is_watching_ = false;  // for the client's end
  bool closes_ = false;       // after the present answer
  HttpAnswer answer_;
  std::string head_;
  std::string event_;        // that is being sent
  std::string newer_event_;  // that replaces what is not being sent yet
};

}  // namespace collect::web
