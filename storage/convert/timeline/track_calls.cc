#include "storage/convert/timeline/track_calls.h"

#include <algorithm>
#include <limits>

namespace collect::convert {
namespace {

int64_t end_of(const TimelineRecord& record) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  const auto room =
      static_cast<uint64_t>(kLast) - static_cast<uint64_t>(std::max<int64_t>(record.ns, 0));
  if (record.duration_ns > room) return kLast;
  return record.ns + static_cast<int64_t>(record.duration_ns);
}

}  // namespace

Status TrackCalls::take(const TimelineRecord& record) {
  if (!same_time_.empty() &&
      (same_time_.front().ns != record.ns || same_time_.size() == kMaxSameTime)) {
    COLLECT_TRY(take_same_time());
  }
  same_time_.push_back(record);
  return {};
}

// A caller comes before what it calls, also where both begin at one time: of calls with a duration
// it is the longer one. They change places among themselves only.
Status TrackCalls::take_same_time() {
  std::vector<TimelineRecord> calls;
  for (const TimelineRecord& record : same_time_) {
    if (record.kind == RecordKind::kCall) calls.push_back(record);
  }
  if (calls.size() > 1) {
    std::stable_sort(calls.begin(), calls.end(),
                     [](const auto& a, const auto& b) { return a.duration_ns > b.duration_ns; });
  }
  size_t next = 0;
  for (const TimelineRecord& record : same_time_) {
    COLLECT_TRY(step(record.kind == RecordKind::kCall ? calls[next++] : record));
  }
  same_time_.clear();
  return {};
}

Status TrackCalls::step(const TimelineRecord& record) {
  COLLECT_TRY(end_until(record.ns));
  return record.kind == RecordKind::kEnd ? end_innermost(record.ns) : push(record);
}

Status TrackCalls::push(const TimelineRecord& record) {
  const bool has_end = record.kind == RecordKind::kCall;
  if (open_.size() == kMaxOpenTrackCalls) {
    ++counts_.too_deep;
    if (!has_end) ++deeper_;
    return {};
  }
  Open call{record.function, has_end, has_end ? end_of(record) : 0};
  if (has_end) {
    if (!timed_.empty() && call.end_ns > open_[timed_.back()].end_ns) {
      call.end_ns = open_[timed_.back()].end_ns;
      ++counts_.cut_calls;
    }
    timed_.push_back(open_.size());
  }
  open_.push_back(call);
  return steps_.call(record.ns, record.function);
}

Status TrackCalls::end_innermost(int64_t ns) {
  if (deeper_ != 0) {
    --deeper_;
    return {};
  }
  // The innermost call without an end of its own is below those that have one.
  size_t at = open_.size();
  if (timed_.size() == at) at = 0;
  for (size_t i = timed_.size(); at > 0 && i > 0 && timed_[i - 1] == at - 1; --i) --at;
  if (at == 0) {
    ++counts_.lone_ends;
    return {};
  }
  return close_to(at - 1, ns);
}

Status TrackCalls::end_until(int64_t ns) {
  while (!timed_.empty() && open_[timed_.back()].end_ns <= ns) {
    COLLECT_TRY(close_to(timed_.back(), open_[timed_.back()].end_ns));
  }
  return {};
}

// Ends all calls but the `size` outermost; the last one to end is the one that has ended.
Status TrackCalls::close_to(size_t size, int64_t ns) {
  while (open_.size() > size) {
    const Open call = open_.back();
    open_.pop_back();
    if (call.has_end) timed_.pop_back();
    if (open_.size() != size) ++(call.has_end ? counts_.cut_calls : counts_.unended_calls);
    COLLECT_TRY(steps_.returned(ns, call.function));
  }
  deeper_ = 0;
  return {};
}

Status TrackCalls::finish() {
  COLLECT_TRY(take_same_time());
  COLLECT_TRY(end_until(std::numeric_limits<int64_t>::max()));
  open_.clear();
  timed_.clear();
  deeper_ = 0;
  return {};
}

}  // namespace collect::convert
