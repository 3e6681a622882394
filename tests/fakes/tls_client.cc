#include "tests/fakes/tls_client.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

namespace collect::fakes {
namespace {

struct Free {
  void operator()(SSL* made) const { SSL_free(made); }
  void operator()(SSL_CTX* made) const { SSL_CTX_free(made); }
};

std::string last_error() {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  return reason == nullptr ? "the connection ended" : reason;
}

int connected(const std::string& address) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port =
      htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int handle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience{20, 0};
  (void)::setsockopt(handle, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (::connect(handle, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) {
    return handle;
  }
  ::close(handle);
  return -1;
}

}  // namespace

struct TlsClient::State {
  ~State() {
    session.reset();
    if (handle >= 0) ::close(handle);
  }
  std::unique_ptr<SSL_CTX, Free> context;
  std::unique_ptr<SSL, Free> session;
  int handle = -1;
};

TlsClient::TlsClient(const std::string& address, const TlsClientOptions& options)
    : state_(std::make_unique<State>()) {
  ERR_clear_error();
  state_->context.reset(SSL_CTX_new(TLS_client_method()));
  SSL_CTX* const context = state_->context.get();
  if (options.is_version_12) SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  EXPECT_EQ(SSL_CTX_load_verify_file(context, options.ca.c_str()), 1);
  if (!options.own.key.empty()) {
    EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context, options.own.certificate.c_str()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, options.own.key.c_str(), SSL_FILETYPE_PEM), 1);
  }
  state_->session.reset(SSL_new(context));
  state_->handle = connected(address);
  SSL_set_fd(state_->session.get(), state_->handle);
  SSL_set1_host(state_->session.get(), "localhost");
  if (SSL_connect(state_->session.get()) != 1) fault_ = last_error();
}

TlsClient::~TlsClient() = default;

std::string TlsClient::version() const {
  return SSL_get_version(state_->session.get());
}

bool TlsClient::may_resume() const {
  return SSL_SESSION_is_resumable(SSL_get0_session(state_->session.get())) == 1;
}

bool TlsClient::send_bytes(Bytes bytes) {
  ERR_clear_error();
  size_t sent = 0;
  return SSL_write_ex(state_->session.get(), bytes.data(), bytes.size(), &sent) == 1;
}

std::vector<uint8_t> TlsClient::receive_all() {
  std::vector<uint8_t> all;
  uint8_t chunk[16384];
  size_t count = 0;
  ERR_clear_error();
  int result = 0;
  while ((result = SSL_read_ex(state_->session.get(), chunk, sizeof chunk, &count)) == 1) {
    all.insert(all.end(), chunk, chunk + count);
  }
  ended_cleanly_ = SSL_get_error(state_->session.get(), result) == SSL_ERROR_ZERO_RETURN;
  if (!ended_cleanly_) fault_ = last_error();
  return all;
}

TlsTunnel::TlsTunnel(std::string target, TlsClientOptions options)
    : target_(std::move(target)), options_(std::move(options)) {
  accepting_ = std::thread([this] { accept_all(); });
}

TlsTunnel::~TlsTunnel() {
  stopping_ = true;
  accepting_.join();
  for (std::thread& thread : threads_) thread.join();
}

void TlsTunnel::accept_all() {
  while (!stopping_) {
    FrameSocket plain = listener_.accept(std::chrono::milliseconds(20));
    if (!plain.is_open()) continue;
    threads_.emplace_back([this, socket = std::make_shared<FrameSocket>(
                                     std::move(plain))]() mutable { carry(std::move(*socket)); });
  }
}

// Both directions in one thread, because a session is for one thread at a time.
void TlsTunnel::carry(FrameSocket plain) {
  std::unique_ptr<SSL_CTX, Free> context(SSL_CTX_new(TLS_client_method()));
  EXPECT_EQ(SSL_CTX_load_verify_file(context.get(), options_.ca.c_str()), 1);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(context.get(), SSL_MODE_AUTO_RETRY);
  if (!options_.own.key.empty()) {
    SSL_CTX_use_certificate_chain_file(context.get(), options_.own.certificate.c_str());
    SSL_CTX_use_PrivateKey_file(context.get(), options_.own.key.c_str(), SSL_FILETYPE_PEM);
  }
  const FrameSocket owned(connected(target_));
  const std::unique_ptr<SSL, Free> session(SSL_new(context.get()));
  SSL_set_fd(session.get(), owned.handle());
  ERR_clear_error();
  if (SSL_connect(session.get()) != 1) return;
  uint8_t chunk[16384];
  while (!stopping_) {
    pollfd waited[2] = {{plain.handle(), POLLIN, 0}, {owned.handle(), POLLIN, 0}};
    if (SSL_pending(session.get()) == 0 && ::poll(waited, 2, 20) <= 0) continue;
    if (waited[0].revents != 0) {
      const ssize_t count = ::recv(plain.handle(), chunk, sizeof chunk, 0);
      size_t sent = 0;
      ERR_clear_error();
      if (count <= 0) SSL_shutdown(session.get());
      if (count <= 0 ||
          SSL_write_ex(session.get(), chunk, static_cast<size_t>(count), &sent) != 1) {
        return;
      }
    }
    if (waited[1].revents != 0 || SSL_pending(session.get()) != 0) {
      size_t count = 0;
      ERR_clear_error();
      if (SSL_read_ex(session.get(), chunk, sizeof chunk, &count) != 1) return;
      if (!plain.send_bytes(Bytes(chunk, count))) return;
    }
  }
}

}  // namespace collect::fakes
