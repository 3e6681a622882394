#include "agent/ring/hooks/lane_pages.h"

#include <sched.h>

#include "agent/platform/system.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"

namespace collect::agent {
namespace {

bool (*writers_alive)() = nullptr;
constexpr uint32_t kTriesPerLook = 1024;

// First and last timestamp of a page that is being overwritten.
void page_times(PageRef page, Lane lane, uint64_t* first, uint64_t* last) {
  const PageInfo& info = page_info(page);
  const uint8_t* bytes = page_bytes(page);
  const uint32_t committed = info.committed.load(std::memory_order_relaxed);
  if (committed <= info.begin) return;
  if (lane == Lane::kIndex) {
    *first = load_le<uint64_t>(bytes + info.begin);
    *last = load_le<uint64_t>(bytes + committed - atf::kEventBytes);
    return;
  }
  *first = load_le<uint64_t>(bytes + info.begin + offsetof(atf::DetailHeaderV2, timestamp_ns));
  *last = info.newest_ns;
}

// Takes the oldest page that no one is sending out of the chain. Its records are lost: their
// numbers are skipped, and the following page says between which times.
PageRef steal_oldest(LaneState& lane, Lane which) {
  const ChainLock lock(lane, ChainLock::Side::kProducer);
  if (!lock.is_held()) return 0;
  PageRef before = 0;
  PageRef page = lane.head != 0 ? lane.head : lane.first.load(std::memory_order_relaxed);
  if (lane.head == 0) lane.head = page;
  while (page != 0 && page != lane.open &&
         page_info(page).pinned.load(std::memory_order_relaxed) != 0) {
    before = page;
    page = page_info(page).next.load(std::memory_order_relaxed);
  }
  if (page == 0 || page == lane.open) return 0;
  PageInfo& info = page_info(page);
  const PageRef next = info.next.load(std::memory_order_relaxed);
  PageInfo& follower = page_info(next);
  if (follower.lost_first_ns == 0) follower.lost_last_ns = 0;
  uint64_t first = 0;
  uint64_t last = 0;
  page_times(page, which, &first, &last);
  if (info.lost_first_ns != 0 && info.lost_first_ns < first) first = info.lost_first_ns;
  follower.lost_first_ns = first;
  if (last > follower.lost_last_ns) follower.lost_last_ns = last;
  follower.lost_reasons |= info.lost_reasons | kLostOverwritten;
  if (before == 0) {
    lane.head = next;
  } else {
    page_info(before).next.store(next, std::memory_order_release);
  }
  if (lane.send == page) lane.send = next;
  return page;
}

}  // namespace

ChainLock::ChainLock(LaneState& lane, Side side)
    : lane_(full_policy() == FullPolicy::kOverwrite ? &lane : nullptr) {
  if (lane_ == nullptr) return;
  uint32_t free = 0;
  held_ = lane_->lock.compare_exchange_strong(free, static_cast<uint32_t>(side),
                                              std::memory_order_acquire) ||
          wait(side);
  if (side == Side::kProducer) lane_->lock_timed_out = !held_;
}

// Between two processes either side can be gone for good. The producer asks nothing of the system.
bool ChainLock::wait(Side side) {
  const bool is_producer = side == Side::kProducer;
  const uint64_t begin_ns = now_ns();
  for (uint32_t tries = 1;; ++tries) {
    uint32_t free = 0;
    if (lane_->lock.compare_exchange_weak(free, static_cast<uint32_t>(side),
                                          std::memory_order_acquire)) {
      return true;
    }
    if (is_producer) {
      sys::relax();
      if (lane_->lock_timed_out || now_ns() - begin_ns > kMaxLockNs) return false;
      continue;
    }
    sys::sched_yield();
    if (!memory_is_shared()) continue;
    if (tries % kTriesPerLook == 0 && writers_alive != nullptr && !writers_alive()) {
      lane_->lock.store(static_cast<uint32_t>(side), std::memory_order_relaxed);
      return true;
    }
  }
}

ChainLock::~ChainLock() {
  if (lane_ != nullptr && held_) lane_->lock.store(0, std::memory_order_release);
}

void set_writers_alive(bool (*alive)()) {
  writers_alive = alive;
}

uint64_t records_of(const PageInfo& info, Lane lane) {
  if (lane == Lane::kDetail) return info.records.load(std::memory_order_acquire);
  return (info.committed.load(std::memory_order_acquire) - info.begin) / atf::kEventBytes;
}

void note_losses(LaneState& lane, PageInfo& info) {
  info.lost_total = lane.lost_total.load(std::memory_order_relaxed);
  info.lost_reasons = lane.lost_reasons.exchange(0, std::memory_order_relaxed);
  info.lost_first_ns = lane.lost_first_ns.exchange(0, std::memory_order_relaxed);
  info.lost_last_ns = lane.lost_last_ns.exchange(0, std::memory_order_relaxed);
}

void link_page(LaneState& lane, PageRef page) {
  if (lane.open == 0) {
    lane.first.store(page, std::memory_order_release);  // pairs with next_span's acquire
  } else {
    // Appending alone is safe without it too.
    const ChainLock lock(lane, ChainLock::Side::kProducer);
    page_info(lane.open).next.store(page, std::memory_order_release);
  }
  lane.open = page;
}

void keep_open_page(Stream& stream, Lane which) {
  LaneState& lane = stream.lane(which);
  if (lane.open_page.exchange(OpenPage::kKept, std::memory_order_acq_rel) != OpenPage::kTaken) {
    return;
  }
  lane.open = 0;
  lane.next_seq = lane.given_back;
  if (which == Lane::kDetail) return;
  stream.pos = stream.end = stream.kept = nullptr;
  stream.committed = nullptr;
  stream.tentative_end.store(0, std::memory_order_relaxed);
}

PageRef take_page(LaneState& lane, Lane which, uint32_t* reasons) {
  const PageRef page = pool_take(reasons);
  if (page != 0 || full_policy() != FullPolicy::kOverwrite) return page;
  const PageRef stolen = steal_oldest(lane, which);
  if (stolen == 0) return 0;
  pool_give(stolen);
  return pool_take(reasons);
}

void recover_chain(LaneState& lane) {
  uint32_t mine = static_cast<uint32_t>(ChainLock::Side::kProducer);
  (void)lane.lock.compare_exchange_strong(mine, 0, std::memory_order_release);
  if (lane.open == 0) lane.open = lane.first.load(std::memory_order_relaxed);
  if (lane.open == 0) return;
  while (const PageRef next = page_info(lane.open).next.load(std::memory_order_relaxed)) {
    lane.open = next;
  }
}

bool open_index_page(Stream& stream, uint32_t* reasons) {
  LaneState& lane = stream.lane(Lane::kIndex);
  if (lane.open != 0) {
    const PageInfo& old = page_info(lane.open);
    lane.next_seq = old.first_seq + records_of(old, Lane::kIndex);
    // A nested hook asked for a new page by clearing `end`, but this one holds nothing yet.
  }
  const PageRef page = take_page(lane, Lane::kIndex, reasons);
  if (page == 0) return false;
  if (lane.open != 0) count_closed_page(page_info(lane.open));
  PageInfo& info = page_info(page);
  info.first_seq = lane.next_seq;
  note_losses(lane, info);
  uint8_t* bytes = page_bytes(page);
  stream.pos = bytes;
  stream.committed = &info.committed;
  link_page(lane, page);
  stream.end = bytes + kPageBytes;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  // A nested hook that came after note_losses has cleared an end that no longer counts.
  if (lane.lost_total.load(std::memory_order_relaxed) != info.lost_total) stream.end = nullptr;
  return true;
}

uint64_t index_next_seq(const Stream& stream) {
  const LaneState& lane = stream.lanes[static_cast<uint32_t>(Lane::kIndex)];
  const PageInfo& info = page_info(lane.open);
  return info.first_seq +
         (info.committed.load(std::memory_order_relaxed) - info.begin) / atf::kEventBytes;
}

}  // namespace collect::agent
