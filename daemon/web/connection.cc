#include "daemon/web/connection.h"

#include <fmt/core.h>
#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cerrno>
#include <utility>

namespace collect::web {
namespace {

constexpr size_t kWriteBytes = 64u << 10;  // at once, after which the deadline begins again

}  // namespace

void Mailbox::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (io_ != nullptr) asio::post(*io_, std::move(work));
}

void Mailbox::close() {
  const std::lock_guard lock(mutex_);
  io_ = nullptr;
}

Connection::Connection(const Server& server, asio::ip::tcp::socket socket,
                       principal::Principal principal, std::string refusal)
    : server_(server),
      socket_(std::move(socket)),
      deadline_(socket_.get_executor()),
      principal_(std::move(principal)),
      refusal_(std::move(refusal)) {}

void Connection::start() {
  expire_after(is_refused() ? kRefusedDeadline : kFirstByteDeadline);
  read();
}

void Connection::close() {
  if (state_ == State::kClosed) return;
  if (state_ == State::kStreaming) server_.feed.remove(*this);
  state_ = State::kClosed;
  if (cancelled_) *cancelled_ = true;
  std::error_code ignored;
  deadline_.cancel();
  socket_.close(ignored);
  server_.on_closed(*this);
}

void Connection::read() {
  state_ = State::kReading;
  socket_.async_read_some(asio::buffer(block_), [this, self = shared_from_this()](
                                                    const std::error_code& error, size_t bytes) {
    if (state_ != State::kReading) return;
    if (error) {
      close();
      return;
    }
    take(std::string_view(block_.data(), bytes));
  });
}

void Connection::take(std::string_view bytes) {
  const bool is_first = reader_.is_empty();
  const HttpReader::Step step = reader_.push(bytes);
  if (step == HttpReader::Step::kMore) {
    // The time counts from the first byte: one that sends a byte now and then gets no more of it.
    if (is_first && !is_refused()) expire_after(kRequestDeadline);
    read();
    return;
  }
  state_ = State::kAnswering;
  ++request_number_;
  if (step == HttpReader::Step::kBad) {
    closes_ = true;
    answer(error_answer(reader_.status(), reader_.why()));
    return;
  }
  unread_ = bytes;
  serve();
}

void Connection::serve() {
  const HttpRequest request = reader_.take();
  closes_ = !request.keeps_alive;
  if (is_refused()) {
    closes_ = true;
    answer(error_answer(403, refusal_));
    return;
  }
  expire_after(kAnswerDeadline);
  cancelled_ = std::make_shared<std::atomic<bool>>(false);
  const std::weak_ptr<Connection> weak = weak_from_this();
  // Called on any thread, perhaps when the connection, or the server, is gone.
  server_.serve(request, cancelled_,
                [weak, mailbox = server_.mailbox, number = request_number_](HttpAnswer made) {
                  mailbox->post([weak, number, made = std::move(made)]() mutable {
                    const auto self = weak.lock();
                    const bool waits = self != nullptr && self->request_number_ == number &&
                                       self->state_ == State::kAnswering;
                    if (waits) self->answer(std::move(made));
                  });
                });
  watch_for_end();
}

// A client that has gone does not need the page that is being made for it, or the events.
void Connection::watch_for_end() {
  if (is_watching_) return;
  is_watching_ = true;
  socket_.async_wait(asio::ip::tcp::socket::wait_read,
                     [this, self = shared_from_this()](const std::error_code& error) {
                       is_watching_ = false;
                       if (error) return;
                       if (state_ != State::kAnswering && state_ != State::kStreaming) return;
                       char byte = 0;
                       const ssize_t got =
                           ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
                       if (got < 0 && errno == EAGAIN) {  // read meanwhile, as a request
                         watch_for_end();
                       } else if (got <= 0 || state_ == State::kStreaming) {
                         close();  // of a stream nothing is read
                       }
                     });
}

void Connection::answer(HttpAnswer made) {
  answer_ = std::move(made);
  if (answer_.is_stream) {
    if (server_.feed.has_room()) {
      closes_ = true;
      stream();
      return;
    }
    answer_ = error_answer(
        503, fmt::format("more than {} pages are open: close one of them", kMaxStreams));
  }
  write();
}

void Connection::write() {
  state_ = State::kWriting;
  head_ = head_of(answer_, closes_);
  expire_after(kWriteDeadline);
  const std::array<asio::const_buffer, 2> buffers = {asio::buffer(head_),
                                                     asio::buffer(answer_.body)};
  asio::async_write(
      socket_, buffers,
      [this](const std::error_code& error, size_t bytes) -> size_t {
        if (error || state_ != State::kWriting) return 0;
        if (bytes != 0) expire_after(kWriteDeadline);
        return kWriteBytes;
      },
      [this, self = shared_from_this()](const std::error_code& error, size_t) {
        if (state_ != State::kWriting) return;
        if (error) {
          close();
          return;
        }
        written();
      });
}

void Connection::written() {
  answer_ = {};
  cancelled_ = nullptr;
  if (closes_) {
    drain();
    return;
  }
  expire_after(kIdleDeadline);
  if (unread_.empty()) {
    read();
    return;
  }
  state_ = State::kReading;
  // In a turn of its own: a client that sends many requests at once does not keep the others.
  asio::post(socket_.get_executor(), [this, self = shared_from_this()] {
    if (state_ == State::kReading) take(std::exchange(unread_, {}));
  });
}

void Connection::stream() {
  state_ = State::kStreaming;
  event_ = head_of(answer_, closes_);
  write_event();
  server_.feed.add(*this);
  watch_for_end();
}

void Connection::send_event(const std::string& bytes) {
  if (!event_.empty()) {
    // A sign of life says nothing that a state which waits does not.
    if (newer_event_.empty() || !bytes.starts_with(':')) newer_event_ = bytes;
    return;
  }
  event_ = bytes;
  write_event();
}

void Connection::write_event() {
  expire_after(kWriteDeadline);
  asio::async_write(socket_, asio::buffer(event_),
                    [this, self = shared_from_this()](const std::error_code& error, size_t) {
                      if (state_ != State::kStreaming) return;
                      if (error) {
                        close();
                        return;
                      }
                      deadline_.expires_at(asio::steady_timer::time_point::max());
                      event_ = std::exchange(newer_event_, {});
                      if (!event_.empty()) write_event();
                    });
}

// What the client still sends is read and dropped, for a moment: a connection that is closed with
// unread bytes is reset, and the answer may be lost with it.
void Connection::drain() {
  if (state_ != State::kDraining) {
    state_ = State::kDraining;
    std::error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    expire_after(kLastBytesDeadline);
  }
  socket_.async_read_some(asio::buffer(block_),
                          [this, self = shared_from_this()](const std::error_code& error, size_t) {
                            if (state_ != State::kDraining) return;
                            if (error) {
                              close();
                            } else {
                              drain();
                            }
                          });
}

void Connection::expire_after(std::chrono::milliseconds time) {
  deadline_.expires_after(time);
  deadline_.async_wait([this, self = shared_from_this()](const std::error_code& error) {
    if (!error && state_ != State::kClosed) on_deadline();
  });
}

void Connection::on_deadline() {
  // It may have been set again while this waited for its turn.
  if (deadline_.expiry() > asio::steady_timer::clock_type::now()) return;
  if (state_ == State::kReading && !reader_.is_empty()) {
    closes_ = true;
    state_ = State::kAnswering;
    answer(error_answer(408, "the request did not come within its time"));
  } else if (state_ == State::kAnswering) {
    closes_ = true;
    ++request_number_;
    if (cancelled_) *cancelled_ = true;
    answer(error_answer(504, "there was no answer in time; what was asked for may still be done"));
  } else {
    close();
  }
}

}  // namespace collect::web
