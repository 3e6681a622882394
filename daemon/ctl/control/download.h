// The files of a session from a collector: listed, fetched, removed.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/control/online.h"

namespace collect::ctl {

struct DownloadOptions {
  std::string session;             // empty: the newest
  std::vector<std::string> files;  // as ListFiles names them; empty: all
  std::string output;              // directory; empty: "<session>/pid_N" below the current one
  bool force = false;              // replace files that are not of this session
};

int list_files(const Online& online, const std::string& session);
// The manifest comes first, and says from then on whose files these are. Each other one comes under
// its name with ".part" and gets its own when it is whole, on the disk. Where the manifest is this
// session's, what an interrupted download left is continued, and what is there already, with its
// size, is kept; elsewhere nothing that is there is touched without `force`.
int download(const Online& online, const DownloadOptions& options);
int delete_session(const Online& online, const std::string& session);

}  // namespace collect::ctl
