// Which user of this machine is at the other end of a connection: what the program does, and stack
// bytes, go to a collector, so it must be one of the users who could look for themselves. A
// listening agent asks it of who connected, a connecting one of who listens.
// Drain thread only. Nothing allocates.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "agent/transport/address.h"

namespace collect::agent {

enum class PeerUser : uint8_t {
  kTrusted,  // this process's own user, root, and on Android the shell, as whom adbd connects
  kOther,
  // The system does not say: the peer has closed already, is in another network namespace, or this
  // process may not ask (Android's apps).
  kUnknown,
  // The system has no such question for TCP: Apple's, some emulators. No one can be distinguished,
  // and on iPhones usbmux ends in loopback TCP, so every user is served. AGENT.md "Known issues".
  kCannotAsk,
  kNotAsked,  // this process has no descriptor left to ask with: no fault of the peer's
};

// The user of a connection that this process accepted. A Unix socket has it itself, for TCP on this
// machine the kernel is asked for the peer's own socket (sock_diag).
PeerUser peer_user(int connected);

struct Server {
  PeerUser user;
  uid_t uid;  // with kOther
};

// The user of a connection that this process made to `dialled`. A connection is made before it is
// accepted, and then only the listener has an owner: both are asked for. A Unix socket in a
// directory that only root and its owner can write is trusted for any owner, because no one else
// can have put it there. A host that is not this one is trusted: its users cannot be checked from
// here.
Server server_user(int connected, const Address& dialled);

}  // namespace collect::agent
