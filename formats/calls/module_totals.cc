#include "formats/calls/module_totals.h"

namespace collect::calls {

uint32_t ModuleTotals::find_or_add(uint32_t module_id) {
  if (const auto it = positions_.find(module_id); it != positions_.end()) return it->second;
  if (modules_.size() >= kMaxModules) {
    module_id = kOther;
    if (const auto it = positions_.find(module_id); it != positions_.end()) return it->second;
  }
  const auto position = static_cast<uint32_t>(modules_.size());
  positions_.emplace(module_id, position);
  modules_.push_back({module_id, {}});
  return position;
}

void ModuleTotals::add(const ModuleTotals& other) {
  for (const Module& module : other.modules_) {
    modules_[find_or_add(module.module_id)].times.add(module.times);
  }
}

}  // namespace collect::calls
