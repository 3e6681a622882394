#include "formats/atf/time_order.h"

#include <algorithm>

namespace collect::atf {

TimeOrder TimeOrder::of(const IndexReader& reader) {
  TimeOrder order;
  order.events_ = reader.size();
  if (order.events_ == 0) return order;
  order.run_starts_.push_back(0);
  TimeRange range{reader.time_of(0), reader.time_of(0)};
  uint64_t previous = range.first_ns;
  reader.blocks().for_each_span(0, order.events_, [&](const EventSpan& span) {
    const uint8_t* at = span.bytes().data();
    const uint64_t end = span.first_seq() + span.size();
    for (uint64_t seq = span.first_seq(); seq < end; ++seq, at += kEventBytes) {
      const uint64_t time = load_le<uint64_t>(at);
      if (time < previous) {
        order.run_starts_.push_back(seq);
        range.last_ns = std::max(range.last_ns, previous);
        range.first_ns = std::min(range.first_ns, time);
      }
      previous = time;
    }
  });
  range.last_ns = std::max(range.last_ns, previous);
  order.range_ = range;
  return order;
}

uint64_t TimeOrder::seek(const IndexReader& reader, size_t run, uint64_t time_ns) const {
  uint64_t low = run_begin(run);
  uint64_t high = run_end(run);
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (reader.time_of(middle) < time_ns) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

}  // namespace collect::atf
