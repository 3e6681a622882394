// One of the two connections of a pair (WIRE.md "Channels"), and how far its handshake is.
#pragma once

#include <cstdint>

#include "agent/drain/link/frames.h"
#include "agent/drain/link/hello.h"
#include "agent/transport/socket.h"

namespace collect::agent {

inline constexpr uint64_t kHandshakeMs = 5000;  // up to the collector's Challenge
inline constexpr uint64_t kPairMs = 10000;      // for the other half of the pair

// kGreeting: the Hello is sent. kProving: the Proof too.
enum class ChannelStep : uint8_t { kClosed, kConnecting, kGreeting, kProving, kOpen };

struct Channel {
  Socket socket;
  ChannelStep step = ChannelStep::kClosed;
  uint64_t deadline_ms = 0;  // until it must be open
  bool challenged = false;   // kGreeting: the Challenge has come, the Proof is not sent yet
  Nonces nonces;
  ReceiveBuffer in;
  SendBuffer out;
};

}  // namespace collect::agent
