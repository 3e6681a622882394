// The drain thread's side of a stream: runs of records to send, what was acknowledged, what is to
// be sent again. See recorder.h.
#include "agent/ring/stream_reader.h"

#include "agent/ring/hooks/deferred.h"
#include "agent/ring/hooks/detail.h"
#include "agent/ring/hooks/lane_pages.h"
#include "agent/ring/hooks/short_calls.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"

namespace collect::agent {
namespace {

constexpr size_t kDetailTimestamp = offsetof(atf::DetailHeaderV2, timestamp_ns);

// The page that the next span comes from; 0 before the lane's first.
PageRef sending_page(LaneState& lane) {
  if (lane.head == 0) lane.head = lane.first.load(std::memory_order_acquire);
  if (lane.send == 0) lane.send = lane.head;
  return lane.send;
}

void fill_index_span(const uint8_t* bytes, uint32_t max_bytes, uint32_t available, Page& span) {
  const uint32_t limit = max_bytes < available ? max_bytes : available;
  span.record_count = limit / static_cast<uint32_t>(atf::kEventBytes);
  span.raw_bytes = span.record_count * static_cast<uint32_t>(atf::kEventBytes);
  span.first_ns = load_le<uint64_t>(bytes);
  span.last_ns = load_le<uint64_t>(bytes + span.raw_bytes - atf::kEventBytes);
}

void fill_detail_span(const uint8_t* bytes, uint32_t max_bytes, uint32_t available, Page& span) {
  span.first_ns = load_le<uint64_t>(bytes + kDetailTimestamp);
  while (span.raw_bytes < available) {
    const auto length = load_le<uint32_t>(bytes + span.raw_bytes);
    if (span.record_count != 0 && span.raw_bytes + length > max_bytes) break;
    span.last_ns = load_le<uint64_t>(bytes + span.raw_bytes + kDetailTimestamp);
    span.raw_bytes += length;
    ++span.record_count;
  }
}

// Bytes of the page's first `records` records, from `begin`.
uint32_t bytes_of(PageRef page, Lane lane, uint64_t records) {
  const PageInfo& info = page_info(page);
  if (lane == Lane::kIndex) return static_cast<uint32_t>(records * atf::kEventBytes);
  uint32_t at = info.begin;
  for (uint64_t i = 0; i < records; ++i) at += load_le<uint32_t>(page_bytes(page) + at);
  return at - info.begin;
}

// How many of the page's records have a number below `seq`.
uint32_t records_below(const PageInfo& info, Lane lane, uint64_t seq) {
  const uint64_t records = records_of(info, lane);
  const uint64_t below = seq <= info.first_seq ? 0 : seq - info.first_seq;
  return static_cast<uint32_t>(below < records ? below : records);
}

// Within a page.
struct Position {
  uint32_t bytes;
  uint32_t records;
};

enum class Found : uint8_t { kSpan, kGoOn, kNothing };

// What the page holds from `begin` on. kGoOn: nothing, and the next page may have something.
Found find_span(PageRef page, Lane which, Position begin, uint32_t max_bytes, bool flush,
                Page& span) {
  PageInfo& info = page_info(page);
  const PageRef next = info.next.load(std::memory_order_acquire);
  const uint32_t committed = info.committed.load(std::memory_order_acquire);
  const uint32_t available = committed > begin.bytes ? committed - begin.bytes : 0;
  if (available == 0) return next != 0 ? Found::kGoOn : Found::kNothing;
  if (next == 0 && !flush && available < kPageBytes / 2) return Found::kNothing;
  const uint8_t* bytes = page_bytes(page) + begin.bytes;
  span = Page{};
  span.lane = which;
  span.flags = info.flags;
  span.first_seq = info.first_seq + begin.records;
  span.lost_total = info.lost_total;
  if (begin.records == 0) {
    span.lost_reasons = info.lost_reasons;
    span.lost_first_ns = info.lost_first_ns;
    span.lost_last_ns = info.lost_last_ns;
  }
  if (which == Lane::kIndex) {
    fill_index_span(bytes, max_bytes, available, span);
  } else {
    fill_detail_span(bytes, max_bytes, available, span);
  }
  span.bytes = Bytes(bytes, span.raw_bytes);
  info.pinned.store(1, std::memory_order_relaxed);
  return Found::kSpan;
}

PageRef last_page(const LaneState& lane) {
  PageRef page = lane.send != 0 ? lane.send : lane.head;
  if (page == 0) page = lane.first.load(std::memory_order_acquire);
  if (page == 0) return 0;
  while (const PageRef next = page_info(page).next.load(std::memory_order_acquire)) page = next;
  return page;
}

uint64_t lane_count(LaneState& lane, Lane which) {
  const ChainLock lock(lane, ChainLock::Side::kDrain);
  const PageRef page = last_page(lane);
  if (page == 0) return lane.given_back;
  const PageInfo& info = page_info(page);
  return info.first_seq + records_of(info, which);
}

void free_chain(LaneState& lane) {
  PageRef page = lane.head != 0 ? lane.head : lane.first.load(std::memory_order_acquire);
  while (page != 0) {
    const PageRef next = page_info(page).next.load(std::memory_order_acquire);
    pool_give(page);
    page = next;
  }
}

}  // namespace

bool next_span(Stream& stream, Lane which, uint32_t max_bytes, bool flush, Page& span) {
  LaneState& lane = stream.lane(which);
  const ChainLock lock(lane, ChainLock::Side::kDrain);
  while (const PageRef page = sending_page(lane)) {
    const PageInfo& info = page_info(page);
    const Found found =
        find_span(page, which, {info.sent, info.sent_records}, max_bytes, flush, span);
    if (found != Found::kGoOn) return found == Found::kSpan;
    lane.send = info.next.load(std::memory_order_acquire);
  }
  return false;
}

bool oldest_span(Stream& stream, Lane which, uint64_t from, bool flush, Page& span) {
  LaneState& lane = stream.lane(which);
  const ChainLock lock(lane, ChainLock::Side::kDrain);
  (void)sending_page(lane);
  for (PageRef page = lane.head; page != 0;) {
    const PageInfo& info = page_info(page);
    const uint32_t records = records_below(info, which, from);
    const Position begin{info.begin + bytes_of(page, which, records), records};
    const Found found = find_span(page, which, begin, kPageBytes, flush, span);
    if (found != Found::kGoOn) return found == Found::kSpan;
    page = info.next.load(std::memory_order_acquire);
  }
  return false;
}

void set_aside(Stream& stream, Lane which, uint64_t next_seq) {
  LaneState& lane = stream.lane(which);
  {
    const ChainLock lock(lane, ChainLock::Side::kDrain);
    for (PageRef page = lane.head; page != 0;) {
      PageInfo& info = page_info(page);
      const uint32_t records = records_below(info, which, next_seq);
      if (records > info.sent_records) {
        info.sent_records = records;
        info.sent = info.begin + bytes_of(page, which, records);
      }
      if (info.first_seq >= next_seq) break;
      page = info.next.load(std::memory_order_acquire);
    }
  }
  acknowledge(stream, which, next_seq);
}

void mark_sent(Stream& stream, Lane which, const Page& span) {
  LaneState& lane = stream.lane(which);
  PageInfo& info = page_info(lane.send);
  info.sent += span.raw_bytes;
  info.sent_records += span.record_count;
}

bool trailing_loss(Stream& stream, Lane which, uint64_t lost_sent, Page& span) {
  LaneState& lane = stream.lane(which);
  const uint64_t lost = lane.lost_total.load(std::memory_order_acquire);
  if (lost <= lost_sent) return false;
  span = Page{};
  span.lane = which;
  span.first_seq = lane_count(lane, which);
  span.lost_total = lost;
  // What no page took over, because none was opened any more.
  span.lost_reasons = lane.lost_reasons.load(std::memory_order_relaxed);
  span.lost_first_ns = lane.lost_first_ns.load(std::memory_order_relaxed);
  span.lost_last_ns = lane.lost_last_ns.load(std::memory_order_relaxed);
  return true;
}

void acknowledge(Stream& stream, Lane which, uint64_t next_seq) {
  LaneState& lane = stream.lane(which);
  const ChainLock lock(lane, ChainLock::Side::kDrain);
  while (lane.head != 0) {
    PageInfo& info = page_info(lane.head);
    const PageRef next = info.next.load(std::memory_order_acquire);
    const uint64_t end_seq = info.first_seq + records_of(info, which);
    if (end_seq > next_seq) return;
    if (info.first_seq + info.sent_records == end_seq) {
      info.pinned.store(0, std::memory_order_relaxed);
    }
    // The open page stays with its thread while there is one. A page that was not sent at all stays
    // too: after a rewind the collector may already have what we are about to send again.
    if (info.sent_records != records_of(info, which)) return;
    if (next == 0) {
      if (!stream.ended) return;
      lane.given_back = end_seq;
      lane.first.store(0, std::memory_order_relaxed);
    }
    if (lane.send == lane.head) lane.send = next;
    pool_give(lane.head);
    lane.head = next;
  }
}

void rewind(Stream& stream, Lane which, uint64_t next_seq) {
  LaneState& lane = stream.lane(which);
  const ChainLock lock(lane, ChainLock::Side::kDrain);
  lane.send = 0;
  PageRef page = sending_page(lane);
  while (page != 0) {
    PageInfo& info = page_info(page);
    const PageRef next = info.next.load(std::memory_order_acquire);
    info.sent_records = records_below(info, which, next_seq);
    info.sent = info.begin + bytes_of(page, which, info.sent_records);
    info.pinned.store(0, std::memory_order_relaxed);
    page = next;
  }
}

void settle_tentative(Stream& stream) {
  keep_open_page(stream, Lane::kIndex);
  const uint32_t end = stream.tentative_end.load(std::memory_order_relaxed);
  const PageRef page = end == 0 ? 0 : stream.lane(Lane::kIndex).open;
  if (page == 0) return;
  std::atomic<uint32_t>& committed = page_info(page).committed;
  if (committed.load(std::memory_order_relaxed) < end) {
    committed.store(end, std::memory_order_release);
  }
  stream.tentative_end.store(0, std::memory_order_relaxed);
}

// A hook takes a call back only if less than the limit has passed since the call when the hook
// reads the counter, which it does while it is busy. Behind the barrier a stream that is not busy
// has no such hook: those that have ended are seen with all they did, and those that come read the
// counter later than `now`, at which the limit has passed for each tentative call. They commit the
// same records, or have done it.
void show_long_calls() {
  uint64_t limit_ns = settings().longer_than_ns;
  if (limit_ns == 0 && settings().library_calls[0] != '\0') limit_ns = kBriefNs;
  if (limit_ns == 0 || !is_recording()) return;
  const uint64_t now = now_ns();
  const auto are_long = [&](const Stream& stream) {
    return !stream.ended && stream.tentative_end.load(std::memory_order_acquire) != 0 &&
           stream.tentative_ns.load(std::memory_order_relaxed) + limit_ns + kShowLateNs <= now;
  };
  const auto show = [&](Stream& stream, bool only_look) {
    LaneState& lane = stream.lane(Lane::kIndex);
    const ChainLock lock(lane, ChainLock::Side::kDrain);
    const PageRef page = last_page(lane);
    if (page == 0) return false;
    PageInfo& info = page_info(page);
    uint32_t committed = info.committed.load(std::memory_order_acquire);
    if (stream.busy.load(std::memory_order_acquire) != 0 ||
        stream.deferred.load(std::memory_order_relaxed) != 0) {
      return false;
    }
    const uint32_t end = stream.tentative_end.load(std::memory_order_acquire);
    if (committed >= end || !are_long(stream)) return false;
    if (only_look) return true;
    return info.committed.compare_exchange_strong(committed, end, std::memory_order_release);
  };
  bool any = false;
  for_each_stream([&](Stream& stream) { any = (are_long(stream) && show(stream, true)) || any; });
  if (!any) return;
  barrier_all_threads();
  for_each_stream([&](Stream& stream) {
    if (are_long(stream)) (void)show(stream, false);
  });
}

bool take_stall(Stream& stream, ThreadStall& stall) {
  StallRing& stalls = stream.stalls;
  const uint32_t taken = stalls.taken.load(std::memory_order_relaxed);
  if (stalls.added.load(std::memory_order_acquire) != taken) {  // pairs with the producer's release
    stall = stalls.entries[taken % stalls.held];
    stalls.taken.store(taken + 1, std::memory_order_release);
    return true;
  }
  if (!stream.ended) return false;
  for (ThreadStall& joined : stalls.joined) {
    if (joined.count == 0) continue;
    stall = joined;
    joined.count = 0;
    return true;
  }
  return false;
}

bool all_acknowledged(Stream& stream) {
  for (const Lane which : {Lane::kIndex, Lane::kDetail}) {
    LaneState& lane = stream.lane(which);
    const ChainLock lock(lane, ChainLock::Side::kDrain);
    const PageRef page = sending_page(lane);
    if (page == 0) continue;
    if (lane.head != page) return false;
    const PageInfo& info = page_info(page);
    if (info.next.load(std::memory_order_acquire) != 0) return false;
    if (info.sent_records != records_of(info, which)) return false;
    if (info.pinned.load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

StreamCounts stream_counts(Stream& stream) {
  LaneState& index = stream.lane(Lane::kIndex);
  LaneState& detail = stream.lane(Lane::kDetail);
  return {lane_count(index, Lane::kIndex), index.lost_total.load(std::memory_order_relaxed),
          lane_count(detail, Lane::kDetail), detail.lost_total.load(std::memory_order_relaxed),
          stream.left_out.load(std::memory_order_relaxed)};
}

// A thread that died between a detail record and the index event that links to it leaves a record
// that belongs to nothing; and between a record and its count, one that is not counted.
void settle(Stream& stream) {
  for (LaneState& lane : stream.lanes) lane.lock.store(0, std::memory_order_relaxed);
  const PageRef page = last_page(stream.lane(Lane::kDetail));
  if (page == 0) return;
  PageInfo& info = page_info(page);
  const uint8_t* bytes = page_bytes(page);
  uint32_t committed = info.committed.load(std::memory_order_acquire);
  uint32_t records = 0;
  uint32_t last = info.begin;
  for (uint32_t at = info.begin; at < committed; ++records) {
    last = at;
    at += load_le<uint32_t>(bytes + at);
    if (at == last) break;
  }
  if (records != 0 && info.sent <= last) {
    constexpr size_t kIndexSeq = offsetof(atf::DetailHeaderV2, index_seq);
    static_assert(kIndexSeq == offsetof(atf::DetailHeaderV1, index_seq));
    const uint64_t count = lane_count(stream.lane(Lane::kIndex), Lane::kIndex);
    const bool dangles =
        settings().atf_version == 1
            ? load_le<uint32_t>(bytes + last + kIndexSeq) == static_cast<uint32_t>(count)
            : load_le<uint64_t>(bytes + last + kIndexSeq) == count;
    if (dangles) {
      committed = last;
      --records;
    }
  }
  info.committed.store(committed, std::memory_order_relaxed);
  info.records.store(records, std::memory_order_relaxed);
}

void release_pages(Stream& stream) {
  free_chain(stream.lane(Lane::kIndex));
  free_chain(stream.lane(Lane::kDetail));
  drop_armed(stream);
  release_deferred(stream);
}

}  // namespace collect::agent
