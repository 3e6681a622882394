// Who holds the other end of a connected socket: a user of this machine, or a remote host.
//
// A Unix socket has the answer itself (SO_PEERCRED). For TCP between two sockets of this machine
// the kernel is asked for the *peer's* socket (sock_diag: source and destination swapped), and its
// uid is the one that created it. A client asks the same of the server that it has reached, whose
// port may be another user's while no collector runs. DAEMON.md "Who gets in" has the rules that
// follow from it.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "agent/transport/sock_diag.h"
#include "daemon/principal/principal.h"
#include "formats/core/result.h"

namespace collect::principal {

struct Peer {
  // The connection does not leave this machine: a Unix socket, or TCP with a loopback address at
  // either end. (A socket bound to another address of this machine can reach 127.0.0.1.)
  bool is_local = false;
  // kUid or kUnknown when it is local, else kAddress.
  Principal principal;
  uid_t uid = 0;        // with kUid
  std::string unknown;  // with kUnknown: why the system does not say whose it is
};

// One for each thread that accepts connections: it keeps its netlink socket.
class PeerLookup {
 public:
  PeerLookup() = default;
  ~PeerLookup();
  PeerLookup(const PeerLookup&) = delete;
  PeerLookup& operator=(const PeerLookup&) = delete;

  // `connected` is a connected stream socket. kExhausted: this machine has no descriptor or memory
  // to answer with, which is not the peer's fault.
  Result<Peer> identify(int connected);

  // Checks a connection that this process made: whether it is served by this process's user or by
  // root, or is not on this machine. A Unix socket (`path` as it was dialled) may be any user's
  // where no other one can have put it: every directory above is root's or that user's, and written
  // by no one else. kPermission: someone else serves it, or the system does not say who; the
  // message continues after an address. Systems without sock_diag say it of no TCP connection,
  // which then passes.
  Status check_server(int connected, const std::string& path = "");

 private:
  struct Ends;
  static Result<Ends> ends_of(int connected);
  Result<Peer> identify_server(const sockaddr_storage& here, const sockaddr_storage& there);
  Result<SocketAnswer> ask_kernel(const sockaddr_storage& own, const sockaddr_storage* other);

  int netlink_ = -1;
  uint32_t sequence_ = 0;
};

// Whether the peer has closed and sent nothing: a probe of the port, and no reason for a log line.
bool ended_without_bytes(int connected);

// The principal of a remote host: its IPv4 address, or the first 64 bits of its IPv6 one, since
// the owner of one such address has all of them.
Principal address_principal(const sockaddr_storage& address);

// ---- what identify() is made of, for tests

// 127.0.0.0/8, ::1, and the first within IPv6.
bool is_loopback(const sockaddr_storage& address);

// The uid shown for users that have none in our user namespace is no one's: a Peer of kUnknown.
Peer local_peer(uid_t uid, bool is_overflow_uid_ours);

// Only a socket that is still held counts; a listener on the same port is another socket.
bool has_owner(const SocketAnswer& answer, uint16_t port, uint16_t peer_port);

// Whether every user has a number in the user namespace with this map (/proc/PID/uid_map), as
// outside of containers. Only then is 65534 a user like any other.
bool maps_every_user(const std::string& uid_map);

// Why the kernel did not answer. kNotFound: there is no such socket; kExhausted: our own shortage,
// not the peer's fault; kUnsupported: it says nothing of sockets.
Error no_answer(int error);

}  // namespace collect::principal
