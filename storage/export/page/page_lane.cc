#include "storage/export/page/page_lane.h"

#include <algorithm>
#include <utility>

namespace collect::exports {

Activity::Activity(const ExportedSession& session, const html::Page& page)
    : session_(session),
      first_ns_(page.first_ns),
      part_ns_((page.last_ns - page.first_ns) / kPageParts + 1),
      parts_(kPageParts) {}

uint64_t Activity::part_of(uint64_t device_ns) const {
  const uint64_t ns = std::max(session_.line_ns(device_ns), first_ns_);
  return std::min<uint64_t>((ns - first_ns_) / part_ns_, kPageParts - 1);
}

void Activity::on_gap(const calls::Gap& gap, const calls::Moment& last) {
  add(gap, last.ns);
}

void Activity::add(const calls::Gap& gap, uint64_t before_ns) {
  const uint64_t first_ns = gap.first_ns != 0 ? gap.first_ns : before_ns;
  gaps_.emplace_back(session_.line_ns(first_ns), session_.line_ns(std::max(first_ns, gap.last_ns)));
}

// The events of a leaf are spread over its time.
Status Activity::add(const calls::LodReader& lod, uint64_t window_last_ns) {
  if (lod.levels() == 0) return {};
  uint64_t begin_ns = lod.first_ns();
  for (uint64_t leaf = 0; leaf < lod.size(0); ++leaf) {
    uint64_t end_ns = lod.last_ns();
    if (leaf + 1 < lod.size(0)) {
      const auto next_ns = lod.first_ns(0, leaf + 1);
      if (!next_ns.ok()) return next_ns.error();
      end_ns = *next_ns;
    }
    const uint64_t before = leaf * lod.leaf_events();
    const uint64_t events = std::min<uint64_t>(lod.leaf_events(), lod.source().events - before);
    const uint64_t first = part_of(begin_ns);
    const uint64_t parts = part_of(end_ns) - std::min(first, part_of(end_ns)) + 1;
    for (uint64_t i = 0; i < parts; ++i) {
      parts_[first + i] += static_cast<uint32_t>(events * (i + 1) / parts - events * i / parts);
    }
    begin_ns = end_ns;
    if (begin_ns > window_last_ns) break;
  }
  return {};
}

uint64_t shown_record(uint64_t detail_seq) {
  return detail_seq == atf::kNoDetail ? html::Bar::kNoRecord : detail_seq;
}

uint64_t put_bars(std::vector<calls::CallBar> drawn, size_t most, const ExportedSession& session,
                  const FunctionNames& functions, PageNames& names, std::vector<html::Bar>& bars) {
  uint64_t left_out = 0;
  for (const calls::CallBar& one : drawn) {
    if (bars.size() >= most) {
      left_out += one.calls;
      continue;
    }
    html::Bar bar;
    bar.depth = one.depth;
    bar.first_ns = session.line_ns(one.first_ns);
    bar.last_ns = std::max(bar.first_ns, session.line_ns(one.last_ns));
    bar.name = names.number_of(session, functions, one.slot);
    bar.calls = one.calls;
    bar.covered_ns = one.covered_ns;
    bar.is_call = one.is_call;
    if (one.is_call) {
      bar.is_whole = one.is_whole;
      bar.begin_ns = session.line_ns(one.begin.ns);
      bar.total_ns = one.total_ns;
      bar.self_ns = one.self_ns;
      bar.end = calls::to_text(one.reason);
      bar.record_of_begin = shown_record(one.begin.detail_seq);
      bar.record_of_end = shown_record(one.detail_seq_of_end);
    }
    bars.push_back(bar);
  }
  return left_out;
}

uint64_t keep_longest(std::vector<html::Interval>& intervals) {
  const size_t all = intervals.size();
  if (intervals.size() > kMaxPageIntervals) {
    const auto length = [](const html::Interval& one) { return one.second - one.first; };
    std::nth_element(intervals.begin(),
                     intervals.begin() + static_cast<ptrdiff_t>(kMaxPageIntervals), intervals.end(),
                     [&](const auto& a, const auto& b) { return length(a) > length(b); });
    intervals.resize(kMaxPageIntervals);
  }
  std::sort(intervals.begin(), intervals.end());
  return all - intervals.size();
}

}  // namespace collect::exports
