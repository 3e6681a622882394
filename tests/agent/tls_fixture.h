// What tls_test.cc has on both sides of a connection: servers by OpenSSL, each in a process of its
// own, and the agent's socket.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/transport/socket.h"
#include "agent/transport/tls.h"
#include "tests/agent/temp_folder.h"
#include "tests/child/forked_child.h"
#include "tests/fakes/certificates.h"

namespace collect::agent {

constexpr int kWaitMs = 60'000;

// Bytes `begin` to `begin + count` of an endless text.
inline std::string pattern(size_t begin, size_t count) {
  std::string text(count, '\0');
  for (size_t i = 0; i < count; ++i) text[i] = static_cast<char>((begin + i) % 251);
  return text;
}

// Of a child process that does `work`; 0: without a failed expectation.
inline int exit_code_of(const std::function<void()>& work) {
  work();
  return testing::Test::HasFailure() ? 1 : 0;
}
inline int in_child(const std::function<void()>& work) {
  child::ForkedChild forked([&] { return exit_code_of(work); });
  return forked.wait(child::seconds(kWaitMs / 1000)).exit_code;
}

// From one process to another, once.
class Signal {
 public:
  Signal() { EXPECT_EQ(::pipe(ends_), 0); }
  ~Signal() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;
  void give() { EXPECT_EQ(::write(ends_[1], "", 1), 1); }
  void wait() {
    char byte = 0;
    EXPECT_EQ(::read(ends_[0], &byte, 1), 1);
  }

 private:
  int ends_[2] = {-1, -1};
};

// A listener on loopback, whose connections a child process serves.
class ServerProcess {
 public:
  explicit ServerProcess(const std::function<void(int listener)>& serve) {
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t bytes = sizeof address;
    EXPECT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), bytes), 0);
    EXPECT_EQ(::listen(listener, 64), 0);
    EXPECT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
    port_ = ntohs(address.sin_port);
    child_.emplace([&] { return exit_code_of([&] { serve(listener); }); });
    ::close(listener);
  }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  uint16_t port() const { return port_; }
  int wait() { return child_->wait(child::seconds(kWaitMs / 1000)).exit_code; }

 private:
  std::optional<child::ForkedChild> child_;
  uint16_t port_ = 0;
};

// Sends the same to each client, and holds the connections.
class PlainServer : public ServerProcess {
 public:
  explicit PlainServer(const std::string& answer)
      : ServerProcess([answer](int listener) {
          for (;;) {
            const int fd = ::accept(listener, nullptr, nullptr);
            if (fd < 0) return;
            EXPECT_EQ(::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL),
                      static_cast<ssize_t>(answer.size()));
          }
        }) {}
};

// The next bytes, or what comes before the end.
inline std::string read_bytes(SSL* ssl, size_t count) {
  std::string got;
  char bytes[16 * 1024];
  while (got.size() < count) {
    const size_t wanted = std::min(sizeof bytes, count - got.size());
    const int read = SSL_read(ssl, bytes, static_cast<int>(wanted));
    if (read <= 0) break;
    got.append(bytes, static_cast<size_t>(read));
  }
  return got;
}

enum class Ending { kNotified, kCut, kReset };
inline void end_by(Ending how, SSL* ssl, int fd) {
  if (how == Ending::kNotified) SSL_shutdown(ssl);
  if (how != Ending::kReset) return;
  const linger at_once{1, 0};
  EXPECT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
}

// Whom the agent's end takes the server for; set in a child only.
inline std::string tls_host = "127.0.0.1";

// The agent's end of a connection.
class Client {
 public:
  explicit Client(uint16_t port, bool with_tls = true) {
    AddressList list;
    const std::string address = "127.0.0.1:" + std::to_string(port);
    EXPECT_EQ(resolve_connect(address.c_str(), list), nullptr);
    bool connected = false;
    EXPECT_EQ(socket.connect(list.items[0], &connected), 0);
    pollfd waiting{socket.fd(), POLLOUT, 0};
    EXPECT_EQ(::poll(&waiting, 1, kWaitMs), 1);
    EXPECT_EQ(socket.finish_connect(), 0);
    if (with_tls) {
      EXPECT_TRUE(socket.start_tls(tls_host.c_str()));
    }
  }

  void wait(short events) {
    pollfd waiting{socket.fd(), socket.poll_events(events), 0};
    EXPECT_EQ(::poll(&waiting, 1, kWaitMs), 1);
  }
  // In parts, of which some are empty and some longer than a record.
  IoResult send(const std::string& text) {
    char* const bytes = const_cast<char*>(text.data());
    const size_t first = text.size() / 3;
    const iovec parts[] = {{bytes, first}, {bytes, 0}, {bytes + first, text.size() - first}};
    return socket.send(parts, 3);
  }
  // How much went out before something else than "later".
  size_t send_all(const std::string& text) {
    size_t sent = 0;
    while (sent < text.size()) {
      const IoResult result = send(text.substr(sent));
      if (result.status == IoStatus::kAgain) {
        EXPECT_EQ(result.bytes, 0u);
        wait(POLLOUT);
        continue;
      }
      EXPECT_EQ(result.status, IoStatus::kDone) << socket.fault_or("");
      if (result.status != IoStatus::kDone) break;
      EXPECT_LE(result.bytes, text.size() - sent);
      sent += result.bytes;
    }
    return sent;
  }
  // Until it is taken, or the connection fails.
  IoResult try_to_send(const std::string& text) {
    for (;;) {
      const IoResult result = send(text);
      if (result.status != IoStatus::kAgain) return result;
      wait(POLLOUT);
    }
  }
  std::string receive_bytes(size_t count) {
    std::string got(count, '\0');
    size_t filled = 0;
    while (filled < count) {
      const IoResult result =
          socket.receive(reinterpret_cast<uint8_t*>(got.data()) + filled, count - filled);
      if (result.status == IoStatus::kAgain) {
        wait(POLLIN);
        continue;
      }
      EXPECT_EQ(result.status, IoStatus::kDone) << socket.fault_or("");
      if (result.status != IoStatus::kDone) break;
      EXPECT_GT(result.bytes, 0u);
      filled += result.bytes;
    }
    got.resize(filled);
    return got;
  }
  // Without a byte before it.
  IoResult receive_end() {
    for (;;) {
      uint8_t byte = 0;
      const IoResult result = socket.receive(&byte, 1);
      EXPECT_EQ(result.bytes, 0u);
      if (result.status != IoStatus::kAgain) return result;
      wait(POLLIN);
    }
  }

  Socket socket;
};

struct ServerOptions {
  std::string certificate = "server";
  std::string client_ca{};  // who must have signed the client's certificate; empty: none is asked
  int max_version = 0;
  bool must_accept = true;
  std::function<void()> before = [] {};  // between the connection and the handshake
};

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = std::make_unique<TempFolder>();
    ASSERT_EQ(in_child(make_files), 0);
  }
  static void TearDownTestSuite() { folder.reset(); }

  static std::string path(const std::string& name) { return folder->path() / name; }

  // In a child only.
  static void prepare(const char* host, const std::string& certificate = "",
                      const std::string& key = "") {
    const std::string ca = path("ca.pem");
    tls_host = host;
    const char* const error = tls_prepare({ca.c_str(), certificate.c_str(), key.c_str()});
    EXPECT_STREQ(error, nullptr);
  }

  class Server : public ServerProcess {
   public:
    Server(const ServerOptions& options, const std::function<void(SSL*, int)>& serve)
        : ServerProcess([&](int listener) { accept_one(options, serve, listener); }) {}
  };

 private:
  static void accept_one(const ServerOptions& options, const std::function<void(SSL*, int)>& serve,
                         int listener) {
    ::signal(SIGPIPE, SIG_IGN);
    SSL_CTX* const context = SSL_CTX_new(TLS_server_method());
    const std::string stem = path(options.certificate);
    EXPECT_EQ(SSL_CTX_use_certificate_file(context, (stem + ".pem").c_str(), SSL_FILETYPE_PEM), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context, (stem + ".key").c_str(), SSL_FILETYPE_PEM), 1);
    if (options.max_version != 0) SSL_CTX_set_max_proto_version(context, options.max_version);
    if (!options.client_ca.empty()) {
      EXPECT_EQ(SSL_CTX_load_verify_file(context, options.client_ca.c_str()), 1);
      SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    }
    const int fd = ::accept(listener, nullptr, nullptr);
    EXPECT_GE(fd, 0);
    options.before();
    SSL* const ssl = SSL_new(context);
    SSL_set_fd(ssl, fd);
    const bool accepted = SSL_accept(ssl) == 1;
    EXPECT_TRUE(accepted || !options.must_accept);
    if (accepted) serve(ssl, fd);
    ::close(fd);
  }

  static void append(const std::string& to, const std::string& text) {
    std::ofstream(path(to), std::ios::app | std::ios::binary) << text;
  }
  static std::string text_of(const std::string& name) {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void make_files() {
    const std::string directory = folder->path();
    const fakes::Authority ca(directory, "ca");
    const fakes::Authority foreign(directory, "foreign");
    (void)ca.issue("server");
    (void)ca.issue("phone");
    (void)ca.issue("expired", std::chrono::minutes(-10));
    (void)foreign.issue("foreign_server");
    append("chain.pem", text_of("phone.pem") + text_of("ca.pem") + text_of("foreign.pem"));
    // As long as a file may be, and one byte more: text before a certificate is passed over.
    const std::string certificate = text_of("ca.pem");
    constexpr size_t kLongest = 256 * 1024 - 1;
    append("longest.pem", std::string(kLongest - certificate.size() - 1, 'x') + "\n" + certificate);
    append("too_long.pem", certificate + std::string(kLongest + 1 - certificate.size(), 'x'));
    std::FILE* const file = std::fopen(path("phone.key").c_str(), "r");
    EVP_PKEY* const key = PEM_read_PrivateKey(file, nullptr, nullptr, nullptr);
    std::fclose(file);
    std::FILE* const locked = std::fopen(path("locked.key").c_str(), "w");
    unsigned char word[] = "secret";
    EXPECT_EQ(PEM_write_PrivateKey(locked, key, EVP_aes_256_cbc(), word, 6, nullptr, nullptr), 1);
    std::fclose(locked);
    EVP_PKEY_free(key);
  }

  static inline std::unique_ptr<TempFolder> folder;
};

}  // namespace collect::agent
