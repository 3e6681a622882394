#include "storage/thread/losses.h"

#include <algorithm>

namespace collect::storage {
namespace {

void join(Stall& into, const Stall& next) {
  into.last_ns = next.last_ns;
  into.stalled_ns += next.stalled_ns;
  into.count += next.count;
}

// Joins neighbours, until at most half are left: those that are closest first, since a short time
// between two stalls that counts as stalled in part is the least wrong.
void halve(std::vector<Stall>& stalls) {
  std::vector<uint64_t> between;
  between.reserve(stalls.size());
  for (size_t i = 1; i < stalls.size(); ++i) {
    between.push_back(stalls[i].first_ns - stalls[i - 1].last_ns);
  }
  const auto middle = between.begin() + static_cast<ptrdiff_t>(between.size() / 2);
  std::nth_element(between.begin(), middle, between.end());
  const uint64_t close_ns = *middle;
  size_t kept = 0;
  for (size_t i = 1; i < stalls.size(); ++i) {
    if (stalls[i].first_ns - stalls[kept].last_ns <= close_ns) {
      join(stalls[kept], stalls[i]);
    } else {
      stalls[++kept] = stalls[i];
    }
  }
  stalls.resize(kept + 1);
}

}  // namespace

bool StallList::is_repeat(const Stall& stall) const {
  const std::vector<Stall>& list = listed_[static_cast<size_t>(stall.kind)];
  return !list.empty() && stall.last_ns <= list.back().last_ns;
}

Stall StallList::rest_of(Stall stall) const {
  const std::vector<Stall>& list = listed_[static_cast<size_t>(stall.kind)];
  if (list.empty()) return stall;
  stall.first_ns = std::max(stall.first_ns, list.back().last_ns);
  stall.stalled_ns = std::min(stall.stalled_ns, stall.last_ns - stall.first_ns);
  return stall;
}

void StallList::add(Stall stall, size_t most) {
  std::vector<Stall>& list = listed_[static_cast<size_t>(stall.kind)];
  stall = rest_of(stall);
  totals_.add(stall);
  if (is_in_switches_file(stall.kind)) {
    list.assign(1, stall);
    return;
  }
  if (list.size() >= std::max<size_t>(most, 2)) halve(list);
  list.push_back(stall);
}

void StallList::append_to(std::vector<Stall>& out, std::optional<uint32_t> thread) const {
  const auto begin = static_cast<ptrdiff_t>(out.size());
  for (const std::vector<Stall>& list : listed_) {
    if (list.empty() || is_in_switches_file(list.front().kind)) continue;
    out.insert(out.end(), list.begin(), list.end());
  }
  std::sort(out.begin() + begin, out.end(),
            [](const Stall& a, const Stall& b) { return a.first_ns < b.first_ns; });
  for (auto stall = out.begin() + begin; stall != out.end(); ++stall) stall->thread = thread;
}

}  // namespace collect::storage
