// Which users of this machine may connect: the setting local_access. DAEMON.md "Who gets in".
//
// Immutable; any thread may ask.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "daemon/principal/peer_user.h"
#include "formats/core/result.h"

namespace collect::principal {

class LocalAccess {
 public:
  // The default: the user of this process, and root.
  LocalAccess();

  // "user", "group:NAME" or "any". kInvalidArgument for anything else.
  static Status check_syntax(std::string_view text);
  // Checks the syntax and looks the group up. kNotFound: there is no such group.
  static Result<LocalAccess> parse(std::string_view text);

  // Why the peer may not connect, with the way out; empty when it may. Only for peers that are
  // local. For "group:NAME" the user database is asked for the user's groups as they are now.
  std::string refusal(const Peer& peer) const;
  // As chmod and chown have it: the file of a Unix socket that we made becomes connectable for
  // those who may. kPermission, kIo.
  Status open_socket_file(const std::string& path) const;

 private:
  enum class Who : uint8_t { kUser, kGroup, kAny };

  Who who_ = Who::kUser;
  uid_t own_;
  gid_t group_ = 0;
  std::string text_ = "user";
};

}  // namespace collect::principal
