// Accepts connections of the control plane and hands them to gRPC: those of TLS, because gRPC by
// itself would take as many as there are descriptors, from whomever (here they are counted, in all
// and by address); and those of a socket that was inherited, because gRPC cannot be given one.
//
// gRPC does not say when it closes one. So each is remembered by its descriptor and the inode of
// its socket: when the descriptor is another file, or none, the connection is over.
//
// One thread of its own. start() and stop() belong to the owner; connected() is for any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "daemon/control/control_address.h"
#include "formats/core/result.h"

namespace collect::control {

inline constexpr size_t kMaxControlConnections = 1024;
// Of one IPv4 address, or of the first 64 bits of an IPv6 one. Loopback has no share of its own.
inline constexpr size_t kMaxControlConnectionsPerAddress = 64;
inline constexpr size_t kNamedAddresses = 5;  // in a line of the log

class ControlListener {
 public:
  // Gets the connected descriptor, to own.
  using Take = std::function<void(int handle)>;

  // Listens; nobody is accepted before start(). Errors as listen_error() has them.
  static Result<std::unique_ptr<ControlListener>> open(const ControlAddress& address);
  // The same with a socket that listens already, and to own.
  static Result<std::unique_ptr<ControlListener>> take_over(int listening);
  ~ControlListener();  // as stop()

  uint16_t port() const { return port_; }  // 0: a Unix socket
  void start(Take take);
  void stop();
  // Who is connected now, those with most connections first: "192.0.2.7 (3), 192.0.2.9 (1)".
  std::string connected();

 private:
  struct Held {
    int handle;
    ino_t inode;
    std::string address;
    bool has_share;
  };

  ControlListener(int listener, int stopper, uint16_t port)
      : listener_(listener), stopper_(stopper), port_(port) {}
  void accept_all();
  bool accept_one();
  // Why not; empty when it may stay, and is remembered then.
  std::string admit(Held held);
  void forget_closed();  // under the mutex

  const int listener_;
  const int stopper_;  // an eventfd: readable when it is time to stop
  const uint16_t port_;
  Take take_;
  std::mutex mutex_;
  std::vector<Held> held_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace collect::control
