#include "agent/ring/page_pool.h"

#include <errno.h>
#include <sys/mman.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace collect::agent {
namespace {

struct Pool {
  uint8_t* pages = nullptr;
  PageInfo* infos = nullptr;
  uint32_t count = 0;
  // Head of the free list: page in the low half, a change counter in the high half against ABA.
  std::atomic<uint64_t> free_head{0};
  std::atomic<uint32_t> touched{0};  // pages that were ever taken
  std::atomic<uint32_t> free_count{0};
};
Pool pool;

PageRef pop_free() {
  uint64_t head = pool.free_head.load(std::memory_order_acquire);
  for (;;) {
    const auto page = static_cast<PageRef>(head);
    if (page == 0) return 0;
    // A stale `free_next` is harmless: the counter makes the exchange fail.
    const uint64_t next = page_info(page).free_next.load(std::memory_order_relaxed);
    const uint64_t changed = ((head >> 32) + 1) << 32 | next;
    if (pool.free_head.compare_exchange_weak(head, changed, std::memory_order_acquire)) return page;
  }
}

// Faults the page in by a call that can say no. Kernels before 5.14 do not know it: there the first
// write takes the fault.
bool populate(PageRef page) {
  if (madvise(page_bytes(page), kPageBytes, MADV_POPULATE_WRITE) == 0) return true;
  return errno == EINVAL;
}

PageRef take_untouched(uint32_t* reasons) {
  uint32_t number = pool.touched.load(std::memory_order_relaxed);
  do {
    if (number >= pool.count) {
      *reasons = wire::kLostRingFull;
      return 0;
    }
  } while (!pool.touched.compare_exchange_weak(number, number + 1, std::memory_order_relaxed));
  const PageRef page = number + 1;
  if (populate(page)) return page;
  pool_give(page);  // memory may come back later
  *reasons = wire::kLostNoMemory;
  return 0;
}

}  // namespace

void* map_private(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
#ifdef MADV_WIPEONFORK
  (void)madvise(at, bytes, MADV_WIPEONFORK);
#endif
  return at;
}

bool pool_init(uint32_t buffer_mb) {
  for (uint64_t mb = buffer_mb; mb >= kMinBufferMb; mb /= 2) {
    const auto count = static_cast<uint32_t>((mb << 20) / kPageBytes);
    const size_t table = sizeof(PageInfo) * count;
    const size_t bytes = size_t{count} * kPageBytes;
    auto* raw = static_cast<uint8_t*>(map_private(bytes + kPageBytes));
    if (raw == nullptr) continue;
    auto* infos = static_cast<PageInfo*>(map_private(table));
    if (infos == nullptr) {
      (void)munmap(raw, bytes + kPageBytes);
      continue;
    }
    const auto address = reinterpret_cast<uintptr_t>(raw);
    pool.pages = raw + (kPageBytes - address % kPageBytes) % kPageBytes;
    pool.infos = infos;
    pool.count = count;
    pool.free_head.store(0, std::memory_order_relaxed);
    pool.touched.store(0, std::memory_order_relaxed);
    pool.free_count.store(0, std::memory_order_relaxed);
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
    pool.free_count.fetch_sub(1, std::memory_order_relaxed);
  } else {
    page = take_untouched(reasons);
    if (page == 0) return 0;
  }
  PageInfo& info = page_info(page);
  info.committed.store(0, std::memory_order_relaxed);
  info.next.store(0, std::memory_order_relaxed);
  info.begin = 0;
  info.records.store(0, std::memory_order_relaxed);
  info.first_seq = 0;
  info.lost_total = 0;
  info.lost_first_ns = 0;
  info.lost_last_ns = 0;
  info.lost_reasons = 0;
  info.flags = 0;
  info.sent = 0;
  info.sent_records = 0;
  info.pinned.store(0, std::memory_order_relaxed);
  return page;
}

void pool_give(PageRef page) {
  uint64_t head = pool.free_head.load(std::memory_order_relaxed);
  uint64_t changed;
  do {
    page_info(page).free_next.store(static_cast<PageRef>(head), std::memory_order_relaxed);
    changed = ((head >> 32) + 1) << 32 | page;
  } while (!pool.free_head.compare_exchange_weak(head, changed, std::memory_order_release));
  pool.free_count.fetch_add(1, std::memory_order_relaxed);
}

uint64_t pool_used_bytes() {
  const uint32_t touched = pool.touched.load(std::memory_order_relaxed);
  const uint32_t unused = pool.free_count.load(std::memory_order_relaxed);
  return touched > unused ? uint64_t{touched - unused} * kPageBytes : 0;
}

uint32_t pool_turns() {
  return static_cast<uint32_t>(pool.free_head.load(std::memory_order_relaxed) >> 32);
}

PageInfo& page_info(PageRef page) {
  return pool.infos[page - 1];
}

uint8_t* page_bytes(PageRef page) {
  return pool.pages + size_t{page - 1} * kPageBytes;
}

}  // namespace collect::agent
