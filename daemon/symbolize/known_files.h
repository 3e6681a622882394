// Where files with a build id are, as processes said it: one that sees another root directory
// (after chroot, in a container) names paths that are not those of this machine, and the process
// that started it may have named the same file so that it is found.
//
// A path is a hint from any process: it is held to symbol_roots before it is opened, and the build
// id is compared, as with a path that its own process names. Thread-safe, bounded.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "storage/model/session_types.h"

namespace collect::symbolize {

class KnownFiles {
 public:
  void add(const std::vector<storage::ModuleInfo>& modules);
  // The newest first, without that of `module`; none when it has no build id.
  std::vector<std::string> other_paths(const storage::ModuleInfo& module) const;

 private:
  using BuildId = std::vector<uint8_t>;

  mutable std::mutex mutex_;
  std::map<BuildId, std::deque<std::string>> paths_;  // guarded by mutex_
  std::deque<BuildId> oldest_first_;                  // guarded by mutex_; the keys of paths_
};

}  // namespace collect::symbolize
