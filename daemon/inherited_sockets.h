// Sockets that a service manager listens on and hands over, as sd_listen_fds(3) has it. It
// continues listening while the daemon is away: who connects meanwhile waits in the socket.
//
// DAEMON.md "Socket activation". Main thread only, before there are others.
#pragma once

#include "formats/core/result.h"

namespace collect::daemon {

struct InheritedSockets {
  int ingest = -1;  // each listens, or is -1: not handed over; to own
  int control = -1;
};

// Takes them out of the environment, so that no child takes them for its own. kInvalidArgument for
// one that has another name than "ingest" or "control", comes twice, or is no stream socket that
// listens.
Result<InheritedSockets> take_inherited_sockets();

}  // namespace collect::daemon
