#include "daemon/symbolize/known_files.h"

#include <algorithm>

#include "daemon/symbolize/limits.h"

namespace collect::symbolize {

void KnownFiles::add(const std::vector<storage::ModuleInfo>& modules) {
  const std::lock_guard lock(mutex_);
  for (const storage::ModuleInfo& module : modules) {
    if (module.build_id.empty() || !module.path.starts_with('/') ||
        module.path.size() >= kMaxPathBytes) {
      continue;
    }
    const auto [known, is_new] = paths_.try_emplace(module.build_id);
    std::deque<std::string>& paths = known->second;
    if (std::find(paths.begin(), paths.end(), module.path) != paths.end()) continue;
    paths.push_front(module.path);
    if (paths.size() > kMaxPathsOfFile) paths.pop_back();
    if (!is_new) continue;
    oldest_first_.push_back(module.build_id);
    if (oldest_first_.size() <= kMaxKnownFiles) continue;
    paths_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
}

std::vector<std::string> KnownFiles::other_paths(const storage::ModuleInfo& module) const {
  const std::lock_guard lock(mutex_);
  const auto known = paths_.find(module.build_id);
  if (known == paths_.end()) return {};
  std::vector<std::string> paths(known->second.begin(), known->second.end());
  std::erase(paths, module.path);
  return paths;
}

}  // namespace collect::symbolize
