// Files of debug information from the servers that DEBUGINFOD_URLS names, by elfutils' own client:
// the same servers and the same cache as those of gdb and perf.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {

// Asks for a file for each module that lacks names or lines of its functions; `client` is the path
// of debuginfod-find. Folders where what came is found by build id; none when nothing came. `say`:
// what it is doing, a line at a time. kUnavailable: no server is named.
Result<std::vector<std::string>> fetch_debug_files(
    const std::string& client, const storage::Manifest& manifest,
    const std::function<void(const std::string&)>& say);

}  // namespace collect::ctl
