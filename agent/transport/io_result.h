// What a socket's send or receive did, plain or within TLS.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::agent {

enum class IoStatus : uint8_t {
  kDone,   // `bytes` were moved
  kAgain,  // nothing now: wait for it with poll
  kEnd,    // the peer closed
  kLost,   // the descriptor is not ours any more
  kError,
};

struct IoResult {
  IoStatus status;
  size_t bytes = 0;
};

}  // namespace collect::agent
