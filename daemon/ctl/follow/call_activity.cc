#include "daemon/ctl/follow/call_activity.h"

#include <algorithm>

namespace collect::ctl::follow {
namespace {

bool is_longer(const SeenCall& a, const SeenCall& b) {
  return a.duration_ns() > b.duration_ns();
}

}  // namespace

void LongestCalls::add(const SeenCall& call) {
  if (heap_.size() < most_) {
    heap_.push_back(call);
    std::push_heap(heap_.begin(), heap_.end(), is_longer);
    return;
  }
  ++skipped_;
  if (most_ == 0 || !is_longer(call, heap_.front())) return;
  std::pop_heap(heap_.begin(), heap_.end(), is_longer);
  heap_.back() = call;
  std::push_heap(heap_.begin(), heap_.end(), is_longer);
}

std::vector<SeenCall> LongestCalls::take() {
  std::vector<SeenCall> calls = std::move(heap_);
  heap_.clear();
  skipped_ = 0;
  std::stable_sort(calls.begin(), calls.end(),
                   [](const SeenCall& a, const SeenCall& b) { return a.end_ns < b.end_ns; });
  return calls;
}

FunctionSums& ActivityTable::at(uint32_t slot) {
  if (slot >= sums_.size()) {
    sums_.resize(slot + 1);
    is_touched_.resize(slot + 1);
  }
  if (!is_touched_[slot]) {
    is_touched_[slot] = true;
    touched_.push_back(slot);
  }
  return sums_[slot];
}

void ActivityTable::clear() {
  for (const uint32_t slot : touched_) {
    sums_[slot] = {};
    is_touched_[slot] = false;
  }
  touched_.clear();
}

}  // namespace collect::ctl::follow
