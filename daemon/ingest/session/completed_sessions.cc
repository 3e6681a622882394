#include "daemon/ingest/session/completed_sessions.h"

namespace collect::ingest {

void CompletedSessions::add(const ProcessId& process, uint32_t recording,
                            const storage::SessionPath& session_path) {
  if (recording == 0) return;  // no agent's: no one repeats it
  const std::lock_guard lock(mutex_);
  const Key key{process, recording};
  if (!session_paths_.insert_or_assign(key, session_path).second) return;
  order_.push_back(key);
  if (order_.size() <= kMaxCompletedSessions) return;
  session_paths_.erase(order_.front());
  order_.pop_front();
}

CompletedSessions::Answer CompletedSessions::find(const ProcessId& process, uint32_t recording,
                                                  uint32_t pid) const {
  const std::lock_guard lock(mutex_);
  const auto found = session_paths_.find({process, recording});
  if (found != session_paths_.end()) return {found->second};
  return {std::nullopt, recording == 0 || !expected_.contains(pid)};
}

void CompletedSessions::expect(uint32_t pid) {
  const std::lock_guard lock(mutex_);
  ++expected_[pid];
}

void CompletedSessions::looked_at(uint32_t pid) {
  const std::lock_guard lock(mutex_);
  const auto found = expected_.find(pid);
  if (found != expected_.end() && --found->second == 0) expected_.erase(found);
}

}  // namespace collect::ingest
