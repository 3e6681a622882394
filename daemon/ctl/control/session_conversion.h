// `collectctl convert --at-collector`: a collector makes a session of another ATF version out of
// one that it has. Files are converted by `convert` alone.
#pragma once

#include <cstdint>
#include <string>

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

}  // namespace collect::ctl
