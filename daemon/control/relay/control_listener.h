// Accepts the connections of the control plane at any kind of address, and hands them to gRPC
// through a relay. gRPC's own listener would take as many as there are descriptors, from any user,
// and never answer again after it has run out of them.
//
// Who may connect is decided here, once for each connection: DAEMON.md "Who gets in". A descriptor
// is kept in reserve, so that the port continues answering, with an end of the connection, when the
// process has none left.
//
// One thread of its own. start() and stop() belong to the owner; the rest is for any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "daemon/control/relay/control_address.h"
#include "daemon/control/relay/control_relay.h"
#include "daemon/control/relay/refusal_log.h"
#include "daemon/principal/local_access.h"
#include "daemon/principal/peer_user.h"
#include "formats/core/result.h"

namespace collect::control {

// Log lines about refused connections.
inline constexpr std::chrono::seconds kConnectionLogPeriod{10};
// At the end: for what gRPC wrote last to reach its clients.
inline constexpr std::chrono::milliseconds kRelayDrain{500};

class ControlListener {
 public:
  // Gets the connected descriptor, to own.
  using Take = ControlRelay::Take;

  struct Options {
    bool is_tls = false;
    // A token or a client certificate is asked for within TLS: it decides, and no uid does.
    bool asks_for_proof = false;
    principal::LocalAccess local;
    std::string unix_path;  // a socket file of our own: given its mode now, removed at the end
  };

  // Listens; no one is accepted before start(). Errors as listen_on() has them.
  static Result<std::unique_ptr<ControlListener>> open(const ControlAddress& address,
                                                       const Options& options);
  // Takes and owns a socket that listens already.
  static Result<std::unique_ptr<ControlListener>> take_over(int listening, const Options& options);
  ~ControlListener();  // as stop()

  uint16_t port() const { return port_; }  // 0: a Unix socket
  Status start(Take take);
  void stop_accepting();  // who is connected stays so
  void stop();            // when gRPC has ended its connections, or at kRelayDrain
  void set_asks_for_proof(bool asks) { asks_for_proof_ = asks; }
  // As ControlRelay has them.
  std::string connected() { return relay_.connected(); }
  principal::Principal principal_of(const std::string& grpc_peer) {
    return relay_.principal_of(grpc_peer);
  }

 private:
  enum class Step : uint8_t { kAccepting, kRelaying, kStopped };

  ControlListener(int listener, int waker, uint16_t port, const Options& options);
  void accept_all();
  void change(Step step);
  void drain();
  bool accept_one();
  void decide(int handle);
  void turn_away_beyond_descriptors();
  void log_refusal(const std::string& who, const std::string& why);

  const int listener_;
  const int waker_;  // an eventfd: readable when `step_` has changed
  const uint16_t port_;
  const principal::LocalAccess local_;
  const std::string unix_path_;
  std::atomic<bool> asks_for_proof_;
  std::atomic<Step> step_{Step::kAccepting};
  Take take_;
  std::jthread thread_;
  // The thread's own, but for what ControlRelay says.
  ControlRelay relay_;
  principal::PeerLookup peers_;
  int reserve_ = -1;
  RefusalLog refusals_{kConnectionLogPeriod};
};

}  // namespace collect::control
