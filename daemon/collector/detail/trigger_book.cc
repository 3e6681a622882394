#include "daemon/collector/detail/trigger_book.h"

#include "daemon/control/request_checks.h"

namespace collect::daemon {

uint64_t TriggerBook::set(ingest::AgentId agent, const std::string& session,
                          const google::protobuf::RepeatedPtrField<api::Trigger>& triggers) {
  const std::lock_guard lock(mutex_);
  Set set{next_++, session, {}};
  for (const api::Trigger& trigger : triggers) {
    set.states.push_back({trigger});
    set.states.back().trigger.set_fired_count(0);
  }
  const uint64_t number = set.number;
  if (set.states.empty()) {
    sets_.erase(agent);
  } else {
    sets_.insert_or_assign(agent, std::move(set));
  }
  return number;
}

void TriggerBook::forget(const std::string& session) {
  const std::lock_guard lock(mutex_);
  std::erase_if(sets_, [&session](const auto& one) { return one.second.session == session; });
}

// Under the lock.
TriggerBook::State* TriggerBook::find(ingest::AgentId agent, uint64_t set, size_t number) {
  const auto found = sets_.find(agent);
  if (found == sets_.end() || found->second.number != set) return nullptr;
  return &found->second.states.at(number);
}

std::optional<api::Trigger> TriggerBook::fire(ingest::AgentId agent, uint64_t set, size_t number,
                                              Time now) {
  const std::lock_guard lock(mutex_);
  State* const state = find(agent, set, number);
  if (state == nullptr || now < state->over_at) return std::nullopt;
  api::Trigger& trigger = state->trigger;
  if (trigger.times() != 0 && trigger.fired_count() >= trigger.times()) return std::nullopt;
  trigger.set_fired_count(trigger.fired_count() + 1);
  const std::chrono::nanoseconds duration(control::nanoseconds_of(trigger.duration()));
  state->over_at = duration.count() == 0 ? Time::max() : now + duration;
  return trigger;
}

std::optional<api::Trigger> TriggerBook::end(ingest::AgentId agent, uint64_t set, size_t number,
                                             Time now) {
  const std::lock_guard lock(mutex_);
  State* const state = find(agent, set, number);
  if (state == nullptr || now >= state->over_at) return std::nullopt;
  state->over_at = now;
  return state->trigger;
}

std::vector<api::Trigger> TriggerBook::triggers(ingest::AgentId agent) const {
  const std::lock_guard lock(mutex_);
  std::vector<api::Trigger> triggers;
  const auto found = sets_.find(agent);
  if (found == sets_.end()) return triggers;
  for (const State& state : found->second.states) triggers.push_back(state.trigger);
  return triggers;
}

}  // namespace collect::daemon
