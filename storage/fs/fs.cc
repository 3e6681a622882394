#include "storage/fs/fs.h"

namespace collect::storage {

Status Fs::make_directories(const std::string& path) {
  // One level after the other, so that the message names the one that failed.
  for (size_t at = 1; at <= path.size(); ++at) {
    if (at != path.size() && path[at] != '/') continue;
    const std::string level = path.substr(0, at);
    const Status made = make_directory(level);
    if (!made.ok()) {
      if (exists(level)) continue;
      return made;
    }
    const size_t slash = level.rfind('/');
    const std::string parent = slash == std::string::npos ? "." : level.substr(0, slash);
    COLLECT_TRY(sync_directory(parent.empty() ? "/" : parent));
  }
  return {};
}

}  // namespace collect::storage
