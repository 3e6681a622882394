// What a collector does with its sessions: `convert --at-collector` makes one of another ATF
// version, `pack` and `unpack --at-collector` change how one is kept, `snapshot` copies one that
// records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/ctl/control/online.h"

namespace collect::ctl {

struct ConversionOptions {
  std::string session;  // empty: the newest
  uint32_t atf_version = 0;
  bool strict = false;  // exit code 1 also for what the version has no place for
};

// 1 also where something is missing from the session, which is printed: the new one is there then.
int convert_session(const Online& online, const ConversionOptions& options);
// `collectctl snapshot`. Empty: the newest session that records.
int snapshot_session(const Online& online, const std::string& session);
// Empty: the newest session. Ends at the first that is refused.
int pack_sessions(const Online& online, const std::vector<std::string>& sessions, bool unpack);

}  // namespace collect::ctl
