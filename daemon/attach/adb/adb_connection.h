// One connection to the adb server: asks, reads answers exactly to their end, and can be given
// away as the byte stream that it became.
//
// Lives on the thread of its io_context. Each call is answered once, never from inside it, and not
// at all after close(). One call at a time.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "daemon/attach/adb/adb_address.h"
#include "daemon/attach/adb/adb_protocol.h"

namespace collect::attach {

// The server answers for itself at once; a device may have to be waited for.
inline constexpr std::chrono::milliseconds kAdbAnswerDeadline{5'000};

class AdbConnection : public std::enable_shared_from_this<AdbConnection> {
 public:
  using OnDone = std::function<void(Status)>;
  using OnText = std::function<void(Result<std::string>)>;

  AdbConnection(asio::io_context& io, AdbAddress address);

  // kUnavailable: no one listens there.
  void connect(OnDone done);
  // Sends the request and reads OKAY. A FAIL is kNotFound with the server's words.
  void ask(std::string_view request, OnDone done);
  // ask() for a request that is answered with a text.
  void ask_text(std::string_view request, OnText done);
  // The next text of an endless answer; without a deadline.
  void next_text(OnText done);
  // Everything up to the end of the stream. kLimit when that is more than `limit`.
  void read_to_end(size_t limit, OnText done);

  void close();
  Socket take_socket() { return std::move(socket_); }

 private:
  void connect_to(const asio::generic::stream_protocol::endpoint& endpoint, OnDone done);
  void send(std::string_view request, AdbAnswer::Parts parts, OnText done);
  void read_answer(AdbAnswer::Parts parts, OnText done);
  void read_piece(OnText done);
  void read_more(size_t limit, OnText done);
  void begin_deadline();
  Error failure(const std::error_code& error) const;

  const AdbAddress address_;
  Socket socket_;
  asio::ip::tcp::resolver resolver_;
  asio::steady_timer deadline_;
  bool timed_out_ = false;
  std::string request_;
  AdbAnswer answer_{AdbAnswer::Parts::kStatus};
  std::string bytes_;  // of the piece, or of everything up to the end
  size_t filled_ = 0;
};

}  // namespace collect::attach
