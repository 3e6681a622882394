#include "formats/calls/lod/lod_summary.h"

#include <algorithm>
#include <array>
#include <limits>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128_values.h"

namespace collect::calls {
namespace {

// Slots of paths: those that are no function come first.
constexpr uint64_t kFirstSlot = 3;

uint64_t number_of(uint32_t slot) {
  return slot >= PathNode::kOther ? PathNode::kRoot - slot : slot + kFirstSlot;
}

class Writer {
 public:
  void number(uint64_t value) { append_uleb128(out_, value); }
  std::vector<uint8_t> take() { return std::move(out_); }

 private:
  std::vector<uint8_t> out_;
};

class Reader {
 public:
  explicit Reader(Bytes bytes) : values_(bytes) {}

  uint64_t number() { return values_.next(); }
  // A number of things that take at least so many bytes each.
  uint64_t count(uint64_t least_bytes) {
    const uint64_t count = number();
    if (count > values_.left().size() / least_bytes) fail();
    return ok() ? count : 0;
  }
  uint32_t below(uint64_t limit) {
    const uint64_t value = number();
    if (value >= limit) fail();
    return ok() ? static_cast<uint32_t>(value) : 0;
  }
  void fail() { values_.fail(); }
  bool ok() const { return values_.ok(); }
  bool is_at_end() const { return ok() && values_.left().empty(); }

 private:
  Leb128Values values_;
};

// Each number of it, in the order of the file.
template <class Counts, class Each>
void for_each_count(Counts& counts, Each each) {
  for (auto* one : {&counts.events, &counts.calls, &counts.lone_ends, &counts.too_deep,
                    &counts.unknown_kinds, &counts.gaps, &counts.lost_events, &counts.stalls,
                    &counts.stalled_ns, &counts.clock_ns, &counts.running_ns, &counts.waited_ns}) {
    each(*one);
  }
  for (auto& one : counts.ended) each(one);
}

template <class Times, class Each>
void for_each_time(Times& times, Each each) {
  for (auto* one : {&times.calls, &times.total_ns, &times.self_ns, &times.waited.total_ns,
                    &times.waited.self_ns, &times.exceptions, &times.skipped, &times.cut_by_gap,
                    &times.open_at_end, &times.cut_by_window, &times.longest_ns}) {
    each(*one);
  }
}

void put_histogram(Writer& out, const DurationHistogram& histogram) {
  out.number(histogram.is_complete() ? 1 : 0);
  const std::vector<uint64_t>& counts = histogram.counts();
  const auto filled = static_cast<uint64_t>(
      std::count_if(counts.begin(), counts.end(), [](uint64_t count) { return count != 0; }));
  out.number(filled);
  uint64_t next = 0;
  histogram.for_each([&](uint32_t bucket, uint64_t count) {
    out.number(bucket - next);
    out.number(count);
    next = uint64_t{bucket} + 1;
  });
}

bool read_histogram(Reader& in, DurationHistogram& histogram, size_t& octaves_left) {
  const bool is_complete = in.below(2) == 1;
  const uint64_t filled = in.count(2);
  uint64_t bucket = 0;
  for (uint64_t i = 0; i < filled && in.ok(); ++i) {
    bucket += in.number();
    const uint64_t count = in.number();
    if (bucket >= DurationHistogram::kMaxBuckets || count == 0) return false;
    histogram.put(static_cast<uint32_t>(bucket), count, octaves_left);
    ++bucket;
  }
  if (!is_complete) histogram.leave_out();
  return in.ok();
}

bool read_functions(Reader& in, LodSummary& summary) {
  const uint64_t functions = in.count(1);
  for (uint64_t i = 0; i < functions && in.ok(); ++i) {
    // Each once, so that slots are what the nodes say.
    if (summary.slots.slot_of(in.number()) != i) return false;
  }
  const uint64_t timed = in.count(14);
  if (timed > functions) return false;
  for (uint64_t slot = 0; slot < timed && in.ok(); ++slot) {
    FunctionTimes times;
    for_each_time(times, [&](uint64_t& one) { one = in.number(); });
    // None: one more than the longest possible.
    const uint64_t shortest = in.number();
    times.shortest_ns = shortest == 0 ? std::numeric_limits<uint64_t>::max() : shortest - 1;
    if (!read_histogram(in, times.durations, summary.totals.octaves_left())) return false;
    summary.totals.put(static_cast<uint32_t>(slot), std::move(times));
  }
  return in.ok();
}

bool read_paths(Reader& in, LodSummary& summary) {
  const uint64_t paths = in.count(7);  // without the root
  if (paths > kMaxLodPaths) return false;
  summary.paths.push_back({});
  for (uint64_t i = 1; i <= paths && in.ok(); ++i) {
    PathNode node;
    node.parent = in.below(i);
    const uint64_t slot = in.below(summary.slots.size() + kFirstSlot);
    node.slot =
        static_cast<uint32_t>(slot < kFirstSlot ? PathNode::kRoot - slot : slot - kFirstSlot);
    node.times = {in.number(), in.number(), in.number(), {in.number(), in.number()}};
    summary.paths.push_back(node);
  }
  return in.ok();
}

}  // namespace

std::vector<uint8_t> encode_lod_summary(const LodSummary& summary) {
  Writer out;
  for_each_count(summary.counts, [&](uint64_t one) { out.number(one); });
  out.number(summary.gaps.size());
  for (const GapOutcome& gap : summary.gaps) {
    out.number(uint64_t{gap.depth} << 1 | (gap.is_doubt ? 1 : 0));
  }
  out.number(summary.slots.size());
  for (uint32_t slot = 0; slot < summary.slots.size(); ++slot) {
    out.number(summary.slots.function_of(slot));
  }
  out.number(summary.totals.times().size());
  for (const FunctionTimes& times : summary.totals.times()) {
    for_each_time(times, [&](uint64_t one) { out.number(one); });
    out.number(times.shortest_ns + 1);  // 0: there are none
    put_histogram(out, times.durations);
  }
  out.number(summary.paths.size() - 1);
  for (size_t i = 1; i < summary.paths.size(); ++i) {
    const PathNode& node = summary.paths[i];
    out.number(node.parent);
    out.number(number_of(node.slot));
    out.number(node.times.calls);
    out.number(node.times.total_ns);
    out.number(node.times.self_ns);
    out.number(node.times.waited.total_ns);
    out.number(node.times.waited.self_ns);
  }
  return out.take();
}

Result<std::unique_ptr<LodSummary>> decode_lod_summary(Bytes bytes) {
  Reader in(bytes);
  auto summary = std::make_unique<LodSummary>();
  for_each_count(summary->counts, [&](uint64_t& one) { one = in.number(); });
  const uint64_t gaps = in.count(1);
  for (uint64_t i = 0; i < gaps && in.ok(); ++i) {
    const uint64_t gap = in.number();
    if (gap >> 1 > OpenCalls::kMaxDepth) in.fail();
    summary->gaps.push_back({static_cast<uint32_t>(gap >> 1), (gap & 1) != 0});
  }
  if (!read_functions(in, *summary) || !read_paths(in, *summary) || !in.is_at_end()) {
    return Error{Code::kDamaged, "the summary contradicts itself"};
  }
  return summary;
}

uint32_t lod_context(std::span<const Gap> gaps, std::span<const Stall> stalls) {
  Writer out;
  out.number(gaps.size());
  for (const Gap& gap : gaps) {
    for (const uint64_t one : {gap.before_seq, gap.lost, gap.first_ns, gap.last_ns}) {
      out.number(one);
    }
  }
  std::vector<std::array<uint64_t, 6>> sorted;
  for (const Stall& stall : stalls) {
    sorted.push_back({stall.first_ns, stall.last_ns, stall.stalled_ns, stall.count,
                      uint64_t{stall.is_of_process}, uint64_t{stall.is_off_processor}});
  }
  std::sort(sorted.begin(), sorted.end());
  for (const auto& stall : sorted) {
    for (const uint64_t one : stall) out.number(one);
  }
  return crc32c(out.take());
}

}  // namespace collect::calls
