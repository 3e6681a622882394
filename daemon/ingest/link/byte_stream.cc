#include "daemon/ingest/link/byte_stream.h"

#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "daemon/ingest/link/limits.h"
#include "formats/core/text/hex.h"

namespace collect::ingest {
namespace {

// Reasons of OpenSSL, which are numbers below 2^31.
class TlsCategory final : public std::error_category {
 public:
  const char* name() const noexcept override { return "tls"; }
  std::string message(int value) const override {
    const char* reason = ERR_reason_error_string(static_cast<unsigned long>(value));
    return "TLS: " + std::string(reason == nullptr ? "failed" : reason);
  }
};

std::error_code tls_error(unsigned long code) {
  static const TlsCategory category;
  return {static_cast<int>(code & 0x7fffffff), category};
}

}  // namespace

ByteStream::ByteStream(Socket socket, TlsSession session)
    : socket_(std::move(socket)),
      session_(std::move(session)),
      is_ready_(!session_ || SSL_is_init_finished(session_.get()) == 1) {
  std::error_code ignored;
  socket_.non_blocking(true, ignored);
}

bool ByteStream::has_certificate() const {
  return session_ && is_ready_ && SSL_get0_peer_certificate(session_.get()) != nullptr &&
         SSL_get_verify_result(session_.get()) == X509_V_OK;
}

std::string ByteStream::certificate_sha256() const {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  unsigned size = 0;
  if (!has_certificate() || X509_digest(SSL_get0_peer_certificate(session_.get()), EVP_sha256(),
                                        digest.data(), &size) != 1) {
    return {};
  }
  return hex_bytes(digest);
}

std::error_code ByteStream::judge(int result, WaitType& wait) {
  const int system_error = errno;
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      wait = Socket::wait_read;
      return asio::error::would_block;
    case SSL_ERROR_WANT_WRITE:
      wait = Socket::wait_write;
      return asio::error::would_block;
    case SSL_ERROR_ZERO_RETURN:
      return asio::error::eof;
    case SSL_ERROR_SYSCALL:
      if (system_error == 0) return asio::error::connection_reset;
      return {system_error, std::system_category()};
    default:
      return tls_error(ERR_peek_error());
  }
}

size_t ByteStream::tls_read(asio::mutable_buffer room, std::error_code& error) {
  error = {};
  const size_t wanted = std::min(room.size(), kTlsReadAheadBytes);
  auto* const bytes = static_cast<uint8_t*>(room.data());
  size_t filled = 0;
  while (filled < wanted) {  // a record has 16 KiB at most
    ERR_clear_error();
    errno = 0;
    size_t count = 0;
    const int result = SSL_read_ex(session_.get(), bytes + filled, wanted - filled, &count);
    if (result != 1) {
      error = judge(result, read_wait_);
      // What came before is delivered first; the next read meets the same end.
      if (filled != 0) error = {};
      return filled;
    }
    filled += count;
  }
  return filled;
}

size_t ByteStream::tls_write(asio::const_buffer bytes, std::error_code& error) {
  error = {};
  const auto* const from = static_cast<const uint8_t*>(bytes.data());
  size_t sent = 0;
  while (sent < bytes.size()) {
    ERR_clear_error();
    errno = 0;
    size_t count = 0;
    const int result = SSL_write_ex(session_.get(), from + sent, bytes.size() - sent, &count);
    if (result != 1) {
      error = judge(result, write_wait_);
      return sent;
    }
    sent += count;
  }
  return sent;
}

void ByteStream::handshake(std::function<void(const std::string& fault)> done) {
  asio::post(socket_.get_executor(),
             [this, done = std::move(done)]() mutable { handshake_step(std::move(done)); });
}

void ByteStream::handshake_step(std::function<void(const std::string& fault)> done) {
  if (!socket_.is_open()) return;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(session_.get());
  if (result == 1) {
    is_ready_ = true;
    done({});
    return;
  }
  WaitType wait = Socket::wait_read;
  const std::error_code error = judge(result, wait);
  if (error == asio::error::would_block) {
    socket_.async_wait(wait, [this, done = std::move(done)](const std::error_code& failed) mutable {
      if (!failed) handshake_step(std::move(done));
    });
    return;
  }
  std::string fault = error == asio::error::eof || error == asio::error::connection_reset
                          ? "the peer ended it"
                          : error.message();
  const long verdict = SSL_get_verify_result(session_.get());
  if (verdict != X509_V_OK) {
    fault += ": " + std::string(X509_verify_cert_error_string(verdict));
  }
  done("TLS handshake: " + fault);
}

void ByteStream::end_sending() {
  if (session_ && is_ready_) {
    ERR_clear_error();
    (void)SSL_shutdown(session_.get());  // the peer reads on until it has seen our end
  }
  std::error_code ignored;
  socket_.shutdown(asio::socket_base::shutdown_send, ignored);
}

void ByteStream::close() {
  if (session_ && is_ready_ && socket_.is_open()) {
    ERR_clear_error();
    (void)SSL_shutdown(session_.get());
  }
  std::error_code ignored;
  socket_.close(ignored);
}

int ByteStream::release() {
  std::error_code error;
  const int handle = socket_.release(error);
  return error ? -1 : handle;
}

}  // namespace collect::ingest
