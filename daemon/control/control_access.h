// Who may call the control plane.
#pragma once

#include <string>

#include "daemon/principal/local_access.h"

namespace collect::control {

// Who may call, and what clients must show on a TCP address. Paths are of PEM files.
struct ControlAccess {
  std::string certificate;  // of this server, its chain behind it; empty: no TLS
  std::string key;
  std::string client_ca;         // empty: no client certificate is asked for
  std::string token;             // in "authorization: Bearer …"; empty: none is asked for
  principal::LocalAccess local;  // users of this machine who may call without the last two
};

}  // namespace collect::control
