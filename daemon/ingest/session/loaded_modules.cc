#include "daemon/ingest/session/loaded_modules.h"

#include <algorithm>

#include "daemon/ingest/link/limits.h"

namespace collect::ingest {

Verdict check_untrusted_modules(const wire::Modules& modules) {
  if (modules.modules_size() > static_cast<int>(wire::kMaxModulesPerFrame)) {
    return violation("more than 16 modules in one frame");
  }
  const bool is_too_long = std::ranges::any_of(modules.modules(), [](const wire::Module& module) {
    return module.path().size() > kMaxPathBytes || module.build_id().size() > kMaxBuildIdBytes;
  });
  if (!is_too_long) return std::nullopt;
  return violation("a module's path or build id is longer than the protocol allows");
}

uint64_t memory_of(const std::vector<storage::ModuleInfo>& modules) {
  uint64_t bytes = 0;
  for (const storage::ModuleInfo& module : modules) {
    bytes += 2 * (sizeof module + module.path.size() + module.build_id.size());
  }
  return bytes;
}

void LoadedModules::add(const std::vector<storage::ModuleInfo>& modules) {
  std::lock_guard lock(mutex_);
  for (const storage::ModuleInfo& module : modules) {
    if (modules_.size() < storage::kMaxModules || modules_.contains(module.module_id)) {
      modules_[module.module_id] = module;
    }
  }
}

Verdict LoadedModules::add_early(const std::vector<storage::ModuleInfo>& modules,
                                 const std::shared_ptr<principal::Account>& account) {
  if (!early_memory_) early_memory_.emplace(account, principal::Resource::kMemory);
  const Status charged = early_memory_->grow(memory_of(modules));
  if (!charged.ok()) return over_budget(charged.error().message);
  add(modules);
  return std::nullopt;
}

void LoadedModules::begin_recording() {
  early_memory_.reset();
  std::lock_guard lock(mutex_);
  modules_.clear();
}

std::vector<storage::ModuleInfo> LoadedModules::all() const {
  std::lock_guard lock(mutex_);
  std::vector<storage::ModuleInfo> all;
  all.reserve(modules_.size());
  for (const auto& [id, module] : modules_) all.push_back(module);
  return all;
}

}  // namespace collect::ingest
