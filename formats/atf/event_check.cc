#include "formats/atf/event_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>

#include "formats/atf/check.h"
#include "formats/atf/joined_ranges.h"
#include "formats/atf/writer.h"

namespace collect::atf {
namespace {

constexpr uint64_t kBlockEvents = 4096;  // 128 KiB: stays in a core's own cache

// In a version 2 event the kind and its seven reserved bytes are one word.
bool has_reserved_bits(const uint8_t* event) {
  return load_le<uint64_t>(event + offsetof(IndexEventV2, event_kind)) >> 8 != 0;
}

// Collects distinct ids. A small direct-mapped cache in front of the set answers nearly every event
// of a real trace, where few functions make most of the calls.
class FunctionCounter {
 public:
  explicit FunctionCounter(std::unordered_set<uint64_t>& seen) : seen_(seen) {}

  void add(uint64_t id) {
    const size_t slot = (id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits);
    if (cached_[slot] && cache_[slot] == id) return;
    cache_[slot] = id;
    cached_[slot] = true;
    if (seen_.size() < kMaxCountedFunctions) seen_.insert(id);
  }

 private:
  static constexpr int kCacheBits = 12;
  std::array<uint64_t, size_t{1} << kCacheBits> cache_{};
  std::array<bool, size_t{1} << kCacheBits> cached_{};
  std::unordered_set<uint64_t>& seen_;
};

// Counts in locals, which the compiler keeps in registers; what happens rarely is a member.
template <Version kVersion, bool kFunctions>
EventTally tally(const IndexReader& index, uint64_t first, uint64_t end) {
  EventTally tally;
  FunctionCounter functions(tally.functions);
  constexpr size_t kKinds = EventTally::kKinds;
  uint64_t kinds[kKinds] = {};
  uint64_t previous = 0;
  uint64_t least = UINT64_MAX, most = 0;
  uint64_t links = 0, next_link = 0;
  uint32_t depth = 0;
  const uint32_t thread_id = index.header().thread_id;
  const uint8_t* at = nullptr;  // the event that is looked at
  const auto look = [&](uint64_t seq, const IndexEvent& event) {
    const size_t kind = event.kind_raw < kKinds ? event.kind_raw : 0;
    if (kinds[kind]++ == 0 && kind == 0) tally.first_unknown_kind = seq;
    const uint64_t time = event.timestamp_ns;
    if (time < previous && tally.backward_steps++ == 0) tally.first_step_back = seq;
    previous = time;
    least = std::min(least, time);
    most = std::max(most, time);
    if constexpr (kFunctions) functions.add(event.function_id);
    if (event.detail_seq != kNoDetail) {
      if (links++ == 0) {
        tally.first_link = seq;
        tally.first_link_seq = next_link = event.detail_seq;
      }
      if (event.detail_seq != next_link && !tally.first_bad_link) tally.first_bad_link = seq;
      ++next_link;
    }
    if constexpr (kVersion == Version::kV1) {
      depth = std::max(depth, event.call_depth);
      if (event.thread_id != thread_id) {
        tally.findings.add_lazily(
            Severity::kWarning, Lane::kIndex, Check::kThreadId, index.offset_of(seq) + 16, [&] {
              return fmt::format("event {} carries thread id {}, the header {}", seq,
                                 event.thread_id, thread_id);
            });
      }
    } else {
      if (has_reserved_bits(at) && tally.reserved++ == 0) tally.first_reserved = seq;
      at += kEventBytes;
    }
  };
  // Memory is the limit: what the checksum brought into the cache is looked at right away.
  uint32_t checksum = 0;
  EventBlocks blocks = index.blocks();
  blocks.for_each_span(first, end, [&](const EventSpan& span) {
    for (uint64_t seq = 0; seq < span.size(); seq += kBlockEvents) {
      const EventSpan block = span.part(seq, std::min(kBlockEvents, span.size() - seq));
      if (tally.events == 0) previous = tally.first_ns = load_le<uint64_t>(block.bytes().data());
      checksum = section_checksum(kVersion, block.bytes(), checksum);
      at = block.bytes().data();
      block.for_each(look);
      tally.events += block.size();
    }
  });
  tally.first_seq = first;
  tally.last_ns = previous;
  std::copy(std::begin(kinds), std::end(kinds), std::begin(tally.kinds));
  tally.links = links;
  tally.max_depth = depth;
  tally.min_ns = least;
  tally.max_ns = most;
  tally.checksum = checksum;
  return tally;
}

template <Version kVersion>
EventTally tally(const IndexReader& index, uint64_t first, uint64_t end, bool functions) {
  return functions ? tally<kVersion, true>(index, first, end)
                   : tally<kVersion, false>(index, first, end);
}

}  // namespace

EventTally tally_events(const IndexReader& index, uint64_t first, uint64_t end, bool functions) {
  return index.version() == Version::kV1 ? tally<Version::kV1>(index, first, end, functions)
                                         : tally<Version::kV2>(index, first, end, functions);
}

void EventTally::add(EventTally&& next, Version version) {
  const auto first_of = [](std::optional<uint64_t>& mine, const std::optional<uint64_t>& later) {
    if (!mine) mine = later;
  };
  if (next.events == 0) return;
  if (events == 0) {
    first_seq = next.first_seq;
    first_ns = next.first_ns;
  } else if (next.first_ns < last_ns) {
    ++backward_steps;
    next.first_step_back = next.first_seq;
  }
  last_ns = next.last_ns;
  first_of(first_unknown_kind, next.first_unknown_kind);
  first_of(first_step_back, next.first_step_back);
  first_of(first_reserved, next.first_reserved);
  // A range's links continue from those before it, or its first one is the first bad one.
  const bool links_on = !next.first_link || next.first_link_seq == links;
  first_of(first_bad_link, links_on ? next.first_bad_link : next.first_link);
  first_of(first_link, next.first_link);
  for (size_t kind = 0; kind < kKinds; ++kind) kinds[kind] += next.kinds[kind];
  backward_steps += next.backward_steps;
  links += next.links;
  reserved += next.reserved;
  max_depth = std::max(max_depth, next.max_depth);
  min_ns = std::min(min_ns, next.min_ns);
  max_ns = std::max(max_ns, next.max_ns);
  checksum = joined_checksum(version, checksum, next.checksum, next.events * kEventBytes);
  events += next.events;
  if (functions.empty()) {
    functions = std::move(next.functions);
  } else {
    for (const uint64_t id : next.functions) {
      if (functions.size() >= kMaxCountedFunctions) break;
      functions.insert(id);
    }
  }
  join_findings(findings, std::move(next.findings));
}

}  // namespace collect::atf
