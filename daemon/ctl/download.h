// The files of a session from a collector: listed, fetched, removed.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/online_commands.h"

namespace collect::ctl {

struct DownloadOptions {
  std::string session;             // empty: the newest
  std::vector<std::string> files;  // as ListFiles names them; empty: all
  std::string output;              // directory; empty: "<session>/pid_N" below the current one
};

int list_files(const Online& online, const std::string& session);
// Each file comes under its name with ".part" and gets its own when it is whole, on the disk. What
// an interrupted download left is gone on with; what is there already, with its size, is kept.
int download(const Online& online, const DownloadOptions& options);
int delete_session(const Online& online, const std::string& session);

}  // namespace collect::ctl
