// Taking the pages back that idle threads are filling: stream_reader.h.
#include "agent/ring/hooks/lane_pages.h"
#include "agent/ring/stream_reader.h"

namespace collect::agent {
namespace {

constexpr uint64_t kTakeEveryNs = 5'000'000;
// Where fewer of all pages could be had, they are not what is missing.
constexpr uint64_t kIdlePagesDivisor = 16;

// Whether the lane has only the page that its thread fills, and all in it is acknowledged.
bool has_idle_page(const Stream& stream, Lane which) {
  const LaneState& lane = stream.lanes[static_cast<uint32_t>(which)];
  if (lane.head == 0 || lane.send != lane.head) return false;
  const PageInfo& info = page_info(lane.head);
  const uint64_t records = records_of(info, which);
  if (info.next.load(std::memory_order_acquire) != 0 || records == 0 ||
      info.sent_records != records || info.pinned.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  return which == Lane::kDetail || stream.tentative_end.load(std::memory_order_acquire) <=
                                       info.committed.load(std::memory_order_relaxed);
}

template <class Visit>
void for_each_idle_page(Visit visit) {
  for_each_stream([&](Stream& stream) {
    if (stream.ended || stream.recording != current_recording()) return;
    for (const Lane which : {Lane::kIndex, Lane::kDetail}) {
      if (has_idle_page(stream, which)) visit(stream, which);
    }
  });
}

// The thread is in no hook, or waits, so the lane's fields hold until it has asked for its page.
void take_open_page(LaneState& lane, Lane which) {
  const PageRef page = lane.head;
  lane.given_back = page_info(page).first_seq + records_of(page_info(page), which);
  lane.first.store(0, std::memory_order_relaxed);
  auto wanted = OpenPage::kWanted;
  if (!lane.open_page.compare_exchange_strong(wanted, OpenPage::kTaken,
                                              std::memory_order_acq_rel)) {
    lane.first.store(page, std::memory_order_relaxed);  // it has, and did not look at this
    return;
  }
  count_closed_page(page_info(page));
  lane.head = lane.send = 0;
  pool_give(page);
}

}  // namespace

void take_idle_pages() {
  static uint64_t next_ns = 0;  // [drain]
  if (!is_recording() || writers_gone() || full_policy() == FullPolicy::kOverwrite ||
      pool_has_room()) {
    return;
  }
  const uint64_t now = now_ns();
  if (now < next_ns) return;
  next_ns = now + kTakeEveryNs;
  uint64_t bytes = 0;
  for_each_idle_page([&](Stream&, Lane) { bytes += kPageBytes; });
  if (bytes == 0 || bytes < pool_bytes() / kIdlePagesDivisor) return;
  for_each_idle_page([](Stream& stream, Lane which) {
    auto kept = OpenPage::kKept;
    (void)stream.lane(which).open_page.compare_exchange_strong(kept, OpenPage::kWanted,
                                                               std::memory_order_acq_rel);
  });
  (void)change_state(0, 0);
  barrier_all_threads();
  for_each_stream([](Stream& stream) {
    if (stream.busy.load(std::memory_order_acquire) != 0 &&
        stream.waiting.load(std::memory_order_acquire) == 0) {
      return;
    }
    if (stream.ended || stream.recording != current_recording()) return;
    for (const Lane which : {Lane::kIndex, Lane::kDetail}) {
      if (has_idle_page(stream, which)) take_open_page(stream.lane(which), which);
    }
  });
}

}  // namespace collect::agent
