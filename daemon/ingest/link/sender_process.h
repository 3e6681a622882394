// The process of this machine that holds an agent's connection: the traced program, or its drain
// process. When it has ended, no one can come back to resume, and a session need not wait for that.
//
// The number comes from the agent's own Hello, so at worst it ends the agent's own session early or
// late. It is believed within our PID namespace alone, and together with the time at which the
// process began, for numbers are used again. Where that can't be read (no /proc, hidepid), nothing
// is known, and a session waits as for a remote agent.
#pragma once

#include <cstdint>

#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class SenderProcess {
 public:
  // From a hello while its connection is there; `is_local`: over loopback, or a Unix socket.
  void note(const wire::Hello& hello, bool is_local);
  // Known to have ended.
  bool is_gone() const;

 private:
  uint32_t pid_ = 0;  // 0: nothing is known
  uint64_t begin_ticks_ = 0;
};

}  // namespace collect::ingest
