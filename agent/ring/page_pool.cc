#include "agent/ring/page_pool.h"

#include <errno.h>
#include <sys/mman.h>

#include "agent/platform/system.h"
#include "agent/ring/free_list.h"
#include "agent/shared_memory.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace collect::agent {
namespace {

constexpr uint64_t kRoomDivisor = 4;
constexpr uint64_t kMaxRoomBytes = 16u << 20;

struct Pool {
  uint8_t* pages = nullptr;
  PageInfo* infos = nullptr;
  uint32_t count = 0;
};
Pool pool;  // constant after the start

struct alignas(kSharedPage) FreePages {
  std::atomic<uint64_t> head{0};     // see changed_head
  std::atomic<uint32_t> touched{0};  // pages that were ever taken
  std::atomic<uint32_t> count{0};
  std::atomic<bool> no_memory{false};  // for the page that the drain tried last
  std::atomic<uint32_t> sleepers{0};   // about: a thread may be killed in its sleep
  std::atomic<uint32_t> wakes{0};      // what they sleep on
};
constinit FreePages free_pages;
PageRef untried = 0;        // the drain's: that page
uint64_t last_wake_ns = 0;  // the drain's

constexpr uint64_t kWakeEveryNs = 1'000'000;
constexpr uint64_t kWakeForFewEveryNs = 5'000'000;

PageRef pop_free() {
  uint64_t head = free_pages.head.load(std::memory_order_acquire);
  for (;;) {
    const auto page = static_cast<PageRef>(head);
    if (page == 0) return 0;
    // A stale `free_next` is harmless: the counter makes the exchange fail.
    const uint32_t next = page_info(page).free_next.load(std::memory_order_relaxed);
    if (free_pages.head.compare_exchange_weak(head, changed_head(head, next),
                                              std::memory_order_acquire)) {
      return page;
    }
  }
}

// Faults the page in by a call that can say no: drain only. Kernels before 5.14 do not know it:
// there the first write takes the fault.
bool populate(PageRef page) {
  if (sys::madvise(page_bytes(page), kPageBytes, MADV_POPULATE_WRITE) == 0) return true;
  return errno != ENOMEM && errno != EFAULT;
}

PageRef take_untouched() {
  uint32_t number = free_pages.touched.load(std::memory_order_relaxed);
  do {
    if (number >= pool.count) return 0;
  } while (
      !free_pages.touched.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  return number + 1;
}

}  // namespace

bool pool_init(uint32_t buffer_mb) {
  if (!share(free_pages)) return false;
  for (uint64_t mb = buffer_mb; mb >= kMinBufferMb; mb /= 2) {
    const auto count = static_cast<uint32_t>((mb << 20) / kPageBytes);
    const size_t table = sizeof(PageInfo) * count;
    const size_t bytes = size_t{count} * kPageBytes;
    auto* raw = static_cast<uint8_t*>(map_table(bytes + kPageBytes));
    if (raw == nullptr) continue;
    auto* infos = static_cast<PageInfo*>(map_table(table));
    if (infos == nullptr) {
      unmap_table(raw, bytes + kPageBytes);
      continue;
    }
    const auto address = reinterpret_cast<uintptr_t>(raw);
    pool.pages = raw + (kPageBytes - address % kPageBytes) % kPageBytes;
    pool.infos = infos;
    pool.count = count;
    free_pages.head.store(0, std::memory_order_relaxed);
    free_pages.touched.store(0, std::memory_order_relaxed);
    free_pages.count.store(0, std::memory_order_relaxed);
    free_pages.no_memory.store(false, std::memory_order_relaxed);
    untried = 0;
    return true;
  }
  return false;
}

uint64_t pool_bytes() {
  return uint64_t{pool.count} * kPageBytes;
}

PageRef pool_take(uint32_t* reasons) {
  PageRef page = pop_free();
  if (page != 0) {
    free_pages.count.fetch_sub(1, std::memory_order_relaxed);
  } else if (free_pages.no_memory.load(std::memory_order_relaxed)) {
    *reasons = kLostNoMemory;
    return 0;
  } else if (page = take_untouched(); page == 0) {
    *reasons = kLostRingFull;
    return 0;
  }
  // Memory that a drain process has faulted in is not mapped here yet: one read maps all of it.
  if (memory_is_shared()) (void)*static_cast<const volatile uint8_t*>(page_bytes(page));
  PageInfo& info = page_info(page);
  info.committed.store(0, std::memory_order_relaxed);
  info.next.store(0, std::memory_order_relaxed);
  info.begin = 0;
  info.records.store(0, std::memory_order_relaxed);
  info.first_seq = 0;
  info.lost_total = 0;
  info.lost_first_ns = 0;
  info.lost_last_ns = 0;
  info.newest_ns = 0;
  info.lost_reasons = 0;
  info.flags = 0;
  info.sent = 0;
  info.sent_records = 0;
  info.pinned.store(0, std::memory_order_relaxed);
  return page;
}

void pool_give(PageRef page) {
  uint64_t head = free_pages.head.load(std::memory_order_relaxed);
  do {
    page_info(page).free_next.store(static_cast<PageRef>(head), std::memory_order_relaxed);
  } while (!free_pages.head.compare_exchange_weak(head, changed_head(head, page),
                                                  std::memory_order_release));
  free_pages.count.fetch_add(1, std::memory_order_relaxed);
}

void pool_prepare() {
  const auto ready = [] { return free_pages.count.load(std::memory_order_relaxed); };
  const auto in_use = static_cast<uint32_t>(pool_used_bytes() / kPageBytes);
  const uint32_t wanted = in_use < kMaxReadyPages ? in_use : kMaxReadyPages;
  while (untried != 0 || ready() < wanted) {
    if (untried == 0) untried = take_untouched();
    if (untried == 0) return;
    const bool there = populate(untried);
    free_pages.no_memory.store(!there, std::memory_order_relaxed);
    if (!there) return;
    pool_give(untried);
    untried = 0;
  }
}

uint64_t pool_used_bytes() {
  const uint32_t touched = free_pages.touched.load(std::memory_order_relaxed);
  const uint32_t unused = free_pages.count.load(std::memory_order_relaxed);
  return touched > unused ? uint64_t{touched - unused} * kPageBytes : 0;
}

bool pool_has_room() {
  const uint64_t all = pool_bytes();
  const uint64_t room = all / kRoomDivisor < kMaxRoomBytes ? all / kRoomDivisor : kMaxRoomBytes;
  return pool_used_bytes() + room <= all;
}

uint32_t pool_free_pages() {
  return pool.count - static_cast<uint32_t>(pool_used_bytes() / kPageBytes);
}

void sleep_for_page(uint64_t least_ns) {
  const uint32_t wakes = free_pages.wakes.load(std::memory_order_acquire);
  uint64_t ns = free_pages.sleepers.fetch_add(1, std::memory_order_relaxed) * kLookNs;
  if (ns < least_ns) ns = least_ns;
  if (ns > kMaxSleepNs) ns = kMaxSleepNs;
  sys::sleep_on(free_pages.wakes, wakes, {0, static_cast<long>(ns)});
  free_pages.sleepers.fetch_sub(1, std::memory_order_relaxed);
}

void wake_for_pages() {
  const uint32_t free = pool_free_pages();
  if (free == 0 || free_pages.sleepers.load(std::memory_order_relaxed) == 0) return;
  const uint64_t now = now_ns();
  if (now - last_wake_ns < (pool_has_room() ? kWakeEveryNs : kWakeForFewEveryNs)) return;
  last_wake_ns = now;
  free_pages.wakes.fetch_add(1, std::memory_order_release);
  sys::wake(free_pages.wakes, free);
}

uint32_t pool_turns() {
  return static_cast<uint32_t>(free_pages.head.load(std::memory_order_relaxed) >> 32);
}

PageInfo& page_info(PageRef page) {
  return pool.infos[page - 1];
}

uint8_t* page_bytes(PageRef page) {
  return pool.pages + size_t{page - 1} * kPageBytes;
}

}  // namespace collect::agent
