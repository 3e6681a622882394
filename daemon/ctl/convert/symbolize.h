// `collectctl symbolize PATH [--symbols DIR]…`: names the functions of a sealed session, here and
// now: of another machine, or whose files were not there when it was sealed. Files are taken by
// build id, as the daemon does it (daemon/symbolize), and the names are put into the manifest.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace collect::ctl {

struct SymbolizeOptions {
  std::string path;
  std::vector<std::string> directories;  // with files by build id, or by name
  std::string debuginfod_client{};  // path of debuginfod-find, asked for what is not found here
  bool json = false;                // one document
};

// 0: every module whose functions occur has names. 1: not all have, and the reason was printed;
// what was found is in the manifest. 2: nothing was done.
int symbolize(const SymbolizeOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
