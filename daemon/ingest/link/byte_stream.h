// The bytes of one connection, plain or within TLS. Reads go straight into the caller's memory
// either way: a plain read is the socket's own, a TLS read is OpenSSL's, on the same descriptor
// (no stream of Asio's between, which would copy every byte twice).
//
// Belongs to one io thread. Handlers hold the owner of the stream, as with a socket; after close()
// they get operation_aborted.
#pragma once

#include <asio/buffer.hpp>
#include <asio/post.hpp>
#include <asio/write.hpp>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

#include "daemon/ingest/link/address.h"
#include "daemon/ingest/link/tls_context.h"

namespace collect::ingest {

class ByteStream {
 public:
  // The socket is connected. A session that is not null was made for its descriptor.
  ByteStream(Socket socket, TlsSession session);

  Socket& socket() { return socket_; }
  bool is_tls() const { return session_ != nullptr; }
  // The handshake is over, or there is none.
  bool is_ready() const { return is_ready_; }
  // Whether the peer has shown a client certificate that holds.
  bool has_certificate() const;
  // SHA-256 of that certificate, in hex; empty without one.
  std::string certificate_sha256() const;
  // For TLS: the handshake. `done` gets a reason when it failed, and is called once, unless the
  // stream is closed before.
  void handshake(std::function<void(const std::string& fault)> done);

  // Without waiting. would_block: wait_readable() first. eof: the peer has ended the stream, within
  // TLS by saying so.
  size_t read_some(asio::mutable_buffer room, std::error_code& error) {
    return session_ ? tls_read(room, error) : socket_.read_some(room, error);
  }
  // The handler runs when read_some() is worth another try.
  template <class Handler>
  void wait_readable(Handler handler) {
    socket_.async_wait(read_wait_, std::move(handler));
  }

  template <class Handler>
  void async_read_some(asio::mutable_buffer room, Handler handler) {
    if (!session_) {
      socket_.async_read_some(room, std::move(handler));
      return;
    }
    // What OpenSSL has decrypted already is no reason for the socket to become readable.
    asio::post(socket_.get_executor(), [this, room, handler = std::move(handler)]() mutable {
      tls_read_or_wait(room, std::move(handler));
    });
  }
  // All of the bytes, which stay where they are until then.
  template <class Handler>
  void async_write(asio::const_buffer bytes, Handler handler) {
    if (!session_) {
      asio::async_write(socket_, asio::buffer(bytes), std::move(handler));
      return;
    }
    asio::post(socket_.get_executor(), [this, bytes, handler = std::move(handler)]() mutable {
      tls_write_or_wait(bytes, std::move(handler));
    });
  }

  void end_sending();
  void close();
  // Gives descriptor and session away, to another thread; -1 when the descriptor is lost.
  int release();
  TlsSession take_session() { return std::move(session_); }

 private:
  using WaitType = Socket::wait_type;

  size_t tls_read(asio::mutable_buffer room, std::error_code& error);
  size_t tls_write(asio::const_buffer bytes, std::error_code& error);
  // What the last operation has to wait for, or why it failed.
  std::error_code judge(int result, WaitType& wait);
  void handshake_step(std::function<void(const std::string& fault)> done);

  template <class Handler>
  void tls_read_or_wait(asio::mutable_buffer room, Handler handler) {
    std::error_code error = asio::error::operation_aborted;
    const size_t count = socket_.is_open() ? tls_read(room, error) : 0;
    if (error != asio::error::would_block) {
      handler(error, count);
      return;
    }
    wait_readable(
        [this, room, handler = std::move(handler)](const std::error_code& failed) mutable {
          if (failed) {
            handler(failed, size_t{0});
          } else {
            tls_read_or_wait(room, std::move(handler));
          }
        });
  }

  template <class Handler>
  void tls_write_or_wait(asio::const_buffer bytes, Handler handler) {
    std::error_code error = asio::error::operation_aborted;
    if (socket_.is_open()) bytes += tls_write(bytes, error);
    if (error != asio::error::would_block) {
      handler(error, size_t{0});
      return;
    }
    socket_.async_wait(write_wait_, [this, bytes, handler = std::move(handler)](
                                        const std::error_code& failed) mutable {
      if (failed) {
        handler(failed, size_t{0});
      } else {
        tls_write_or_wait(bytes, std::move(handler));
      }
    });
  }

  Socket socket_;
  TlsSession session_;  // null: plain
  bool is_ready_;
  WaitType read_wait_ = Socket::wait_read;
  WaitType write_wait_ = Socket::wait_write;
};

}  // namespace collect::ingest
