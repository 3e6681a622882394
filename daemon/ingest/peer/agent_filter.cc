#include "daemon/ingest/peer/agent_filter.h"

#include <algorithm>

namespace collect::ingest {

void AgentFilter::set(const storage::FunctionFilter& filter) {
  filter_.reset();
  if (!filter.only.empty() || !filter.except.empty()) filter_ = filter;
}

void AgentFilter::begin_recording(uint64_t start_ns) {
  if (filter_ && filter_->at_ns == 0) filter_->at_ns = start_ns;
}

bool AgentFilter::is_off(uint64_t function_id) const {
  return filter_ && std::ranges::any_of(filter_->switched_off, [&](const auto& off) {
           return off.function_id == function_id;
         });
}

std::vector<HotFunction> AgentFilter::still_on(const std::vector<HotFunction>& functions) const {
  std::vector<HotFunction> on;
  const size_t off = filter_ ? filter_->switched_off.size() : 0;
  for (const HotFunction& function : functions) {
    if (off + on.size() == storage::kMaxSwitchedOff) break;
    if (!is_off(function.function_id)) on.push_back(function);
  }
  return on;
}

size_t AgentFilter::switch_off(const std::vector<HotFunction>& functions, uint64_t at_ns) {
  const std::vector<HotFunction> on = still_on(functions);
  if (on.empty()) return 0;
  if (!filter_) filter_ = storage::FunctionFilter{at_ns, {}, {}, 0};
  for (const HotFunction& function : on) {
    filter_->switched_off.push_back({at_ns, function.function_id, function.calls_per_second});
  }
  return on.size();
}

wire::Command switch_off_command(const std::vector<HotFunction>& functions) {
  wire::Command command;
  wire::SetFunctionFilter& filter = *command.mutable_set_function_filter();
  for (const HotFunction& function : functions) filter.add_function_ids(function.function_id);
  filter.set_mode(wire::SetFunctionFilter::LESS);
  filter.set_last(true);
  return command;
}

}  // namespace collect::ingest
