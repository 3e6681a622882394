// The client's side of TLS for tests: one connection by itself, and a tunnel that lends TLS to
// clients which have none. Blocking; every wait has a bound.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/certificates.h"
#include "tests/fakes/frame_socket.h"

namespace collect::fakes {

struct TlsClientOptions {
  std::string ca;    // who must have signed the server's certificate
  CertifiedKey own;  // may be empty
  bool is_version_12 = false;
};

class TlsClient {
 public:
  // Connects and shakes hands; fault() says why it could not.
  TlsClient(const std::string& address, const TlsClientOptions& options);
  ~TlsClient();

  const std::string& fault() const { return fault_; }
  std::string version() const;
  // Whether it was given something by which a later connection could continue with this one's
  // session.
  bool may_resume() const;
  bool send_bytes(Bytes bytes);
  // What comes until the other side ends it or time is up.
  std::vector<uint8_t> receive_all();
  // Whether the end was TLS's own, and not a connection that broke.
  bool ended_cleanly() const { return ended_cleanly_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string fault_;
  bool ended_cleanly_ = false;
};

// Listens on a loopback port; each connection there becomes a TLS connection to `target`.
class TlsTunnel {
 public:
  TlsTunnel(std::string target, TlsClientOptions options);
  ~TlsTunnel();
  const std::string& address() const { return listener_.address(); }

 private:
  void accept_all();
  void carry(FrameSocket plain);

  const std::string target_;
  const TlsClientOptions options_;
  ListeningSocket listener_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;  // the accepting thread only, until it has ended
  std::thread accepting_;
};

}  // namespace collect::fakes
