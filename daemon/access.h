// Who may connect: tokens and certificates, read from the files that the settings name. What is
// wrong with them is found before any client is served, or, at a reload, before anything is
// changed.
#pragma once

#include <memory>
#include <string>

#include "daemon/config.h"
#include "daemon/control/control_server.h"
#include "daemon/ingest/link/tls_context.h"
#include "daemon/principal/local_access.h"

namespace collect::daemon {

struct Access {
  std::string token;                              // of agents; empty: none is asked for
  std::string guest_token;                        // of agents of other users; empty: they stay out
  std::shared_ptr<const ingest::TlsContext> tls;  // of agents; null: none
  principal::LocalAccess local;
  control::ControlAccess control;  // with `local` in it
};

// Errors name the key and the file, never what is in it.
Result<Access> read_access(const Config& config);

}  // namespace collect::daemon
