#include "daemon/control/watch_backlog.h"

namespace collect::control {

void AgentBacklog::put(v1::AgentEvent event) {
  if (!present_done_) seen_before_present_.insert(event.agent().name());
  enqueue(std::move(event));
}

void AgentBacklog::put_present(std::vector<v1::Agent> agents) {
  for (v1::Agent& agent : agents) {
    if (seen_before_present_.contains(agent.name())) continue;
    v1::AgentEvent event;
    event.set_kind(v1::AgentEvent::PRESENT);
    *event.mutable_agent() = std::move(agent);
    enqueue(std::move(event));
  }
  present_done_ = true;
  seen_before_present_.clear();
}

void AgentBacklog::enqueue(v1::AgentEvent event) {
  const std::string name = event.agent().name();
  const auto found = waiting_.find(name);
  if (found == waiting_.end()) {
    if (order_.size() >= kMaxBacklogAgents) {
      overflowed_ = true;
      return;
    }
    order_.push_back(name);
    waiting_.emplace(name, std::move(event));
    return;
  }
  // The client has not seen the event that waits. An arrival that it never heard of stays one.
  const auto before = found->second.kind();
  if (event.kind() == v1::AgentEvent::CHANGED &&
      (before == v1::AgentEvent::ADDED || before == v1::AgentEvent::PRESENT)) {
    event.set_kind(before);
  }
  found->second = std::move(event);
}

v1::AgentEvent AgentBacklog::take() {
  const auto found = waiting_.find(order_.front());
  v1::AgentEvent event = std::move(found->second);
  waiting_.erase(found);
  order_.pop_front();
  return event;
}

}  // namespace collect::control
