// Is between the clients of the control plane and gRPC: each accepted connection gets a socket
// pair, gRPC has the other end of it, and every byte passes here. So the frames of plain HTTP/2 are
// counted before gRPC works for them, the rate of calls is bounded for each principal, a client
// that may not call gets an answer that gRPC has no part in, and the end of a connection is known.
//
// Within TLS, which gRPC ends, there are no frames to count: there the bytes are.
//
// Everything is called on the listener's thread, but for connected() and principal_of().
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "daemon/control/relay/call_rate.h"
#include "daemon/control/relay/http2_meter.h"
#include "daemon/control/relay/refusal_answer.h"
#include "daemon/principal/principal.h"
#include "formats/core/result.h"

namespace collect::control {

inline constexpr size_t kMaxControlConnections = 1024;
// For one user, one address, or all unknown clients together.
inline constexpr size_t kMaxControlConnectionsPerPrincipal = 256;
inline constexpr size_t kMaxControlConnectionsPerAddress = 64;
// For clients that may not call, and how long each may take to read why.
inline constexpr size_t kMaxRefusedConnections = 16;
inline constexpr std::chrono::seconds kRefusedDeadline{3};
// Calls, SETTINGS and PINGs that one principal may begin in a second, and at once; beyond it its
// connections are read more slowly. gRPC 1.51 keeps up with ten times as much.
inline constexpr double kCallsPerSecond = 1'000;
inline constexpr double kCallsAtOnce = 1'000;
// Likewise within TLS, in bytes from the client; what it is sent gives it more, as downloads are
// acknowledged.
inline constexpr double kTlsBytesPerSecond = 64 << 10;
inline constexpr double kTlsBytesAtOnce = 128 << 10;
inline constexpr double kTlsBytesPerByteSent = 1.0 / 32;
// Reserved of that for each connection: one that floods can't stop the others of its user.
inline constexpr double kOwnCallsPerSecond = 20;
inline constexpr double kOwnCallsAtOnce = 10;
inline constexpr double kOwnTlsBytesPerSecond = 4 << 10;
inline constexpr double kOwnTlsBytesAtOnce = 8 << 10;
inline constexpr size_t kRequestBytes = 4u << 10;  // taken from a client at once
inline constexpr size_t kRelayBytes = 16u << 10;   // moved at once, and held for a slow reader
inline constexpr int kRelayTurns = 16;             // before the others have theirs
inline constexpr size_t kNamedPrincipals = 5;      // in a line of the log

// For the log: "user 1000", "192.0.2.7".
std::string describe(const principal::Principal& principal);

// What one connection may begin (is_own), or all of its principal together, from now on.
CallRate fresh_rate(bool is_tls, bool is_own, CallRate::Time now);

class ControlRelay {
 public:
  using Time = std::chrono::steady_clock::time_point;
  // Gets gRPC's end of the pair, to own.
  using Take = std::function<void(int handle)>;

  explicit ControlRelay(bool is_tls) : is_tls_(is_tls) {}
  ~ControlRelay();
  ControlRelay(const ControlRelay&) = delete;
  ControlRelay& operator=(const ControlRelay&) = delete;

  // kExhausted, kIo. `poll()` below works from then on.
  Status open();
  // Own the descriptor in any case. kLimit: of all connections, or of its principal's.
  Status admit(int client, const principal::Principal& principal, const Take& take);
  // Answers every call of the client with `reason`; within TLS, and beyond the limit, only closes.
  void refuse(int client, const std::string& reason);

  // An epoll descriptor: readable when there is work for run().
  int handle() const { return epoll_; }
  void run();
  // When run() has work even so; a long time away when there is none.
  int wait_ms();
  bool is_empty() const { return connections_.empty(); }

  // Who is connected now, those with most connections first: "user 1000 (3), 192.0.2.9 (1)".
  std::string connected();
  // Whose call it is, by gRPC's name for the peer (ServerContext::peer()); kUnknown: it is gone.
  principal::Principal principal_of(const std::string& grpc_peer);

 private:
  struct Flow {
    std::string pending;  // read, and not yet taken by the other side
    bool at_end = false;  // nothing more comes
  };
  struct Connection {
    explicit Connection(CallRate rate) : own(rate) {}

    int client = -1;
    int server = -1;  // -1: refused
    principal::Principal principal;
    std::string grpc_peer;
    Flow up;                                 // from the client
    Flow down;                               // to the client
    std::unique_ptr<Http2Meter> meter;       // null within TLS
    CallRate own;                            // beside its principal's
    std::unique_ptr<RefusalAnswer> refusal;  // of one that may not call
    Time deadline = Time::max();
    Time paused_until = Time::min();
    uint32_t watched_client = 0;  // what epoll reports of each descriptor; 0: nothing
    uint32_t watched_server = 0;
  };
  using Connections = std::map<uint64_t, std::unique_ptr<Connection>>;

  bool has_room(const principal::Principal& principal, std::string& why) const;
  void add(std::unique_ptr<Connection> connection);
  void end(Connections::iterator at);
  // False when the connection is over.
  bool serve(Connection& connection, Time now);
  bool move_up(Connection& connection, Time now);
  bool move_down(Connection& connection, Time now);
  bool answer_refused(Connection& connection);
  bool is_paused(Connection& connection, Time now);
  bool charge(Connection& connection, Bytes bytes, Time now);
  CallRate& rate_of(const principal::Principal& principal, Time now);
  void watch(uint64_t id, Connection& connection, Time now);
  void watch_one(int fd, uint64_t data, uint32_t wanted, uint32_t& watched);

  const bool is_tls_;
  int epoll_ = -1;
  uint64_t next_id_ = 1;
  size_t refused_ = 0;
  std::map<principal::Principal, CallRate> rates_;  // of those who are connected
  std::vector<uint8_t> scratch_ = std::vector<uint8_t>(kRelayBytes);
  std::mutex mutex_;
  Connections connections_;  // changed on the thread, under mutex_; read elsewhere under it
};

}  // namespace collect::control
