#include "daemon/principal/fair_queue.h"

#include <algorithm>

namespace collect::principal {

void FairQueue::push(const Principal& principal, Work work) {
  Line& line = lines_[principal];
  if (line.work.empty()) {
    line.used_ns = std::max(line.used_ns, level_ns_);
    turns_.emplace(line.used_ns, principal);
  }
  line.work.push_back(std::move(work));
}

std::pair<Principal, FairQueue::Work> FairQueue::pop() {
  const auto [used_ns, principal] = *turns_.begin();
  turns_.erase(turns_.begin());
  level_ns_ = used_ns;
  Line& line = lines_.at(principal);
  Work work = std::move(line.work.front());
  line.work.pop_front();
  if (!line.work.empty()) turns_.emplace(used_ns, principal);
  return {principal, std::move(work)};
}

void FairQueue::charge(const Principal& principal, std::chrono::nanoseconds spent) {
  const auto found = lines_.find(principal);
  if (found == lines_.end()) return;
  Line& line = found->second;
  if (!line.work.empty()) turns_.erase({line.used_ns, principal});
  line.used_ns += static_cast<uint64_t>(spent.count());
  if (!line.work.empty()) {
    turns_.emplace(line.used_ns, principal);
    return;
  }
  if (lines_.size() < kMaxIdleLines) return;
  // Those without work whom the others have caught up with start level when they come back.
  std::erase_if(lines_, [this](const auto& one) {
    return one.second.work.empty() && one.second.used_ns <= level_ns_;
  });
}

void FairQueue::clear() {
  lines_.clear();
  turns_.clear();
}

}  // namespace collect::principal
