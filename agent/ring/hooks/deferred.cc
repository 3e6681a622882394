#include "agent/ring/hooks/deferred.h"

#include "agent/ring/hooks/unwinding.h"

namespace collect::agent {
namespace {

constexpr uint32_t kEventBytes = sizeof(DeferredEvent);

uint64_t place(PageRef page, uint32_t offset) {
  return uint64_t{page} << 32 | offset;
}
PageRef page_of(uint64_t place) {
  return static_cast<PageRef>(place >> 32);
}
uint32_t offset_of(uint64_t place) {
  return static_cast<uint32_t>(place);
}

DeferredEvent& event_at(uint64_t place) {
  return *reinterpret_cast<DeferredEvent*>(page_bytes(page_of(place)) + offset_of(place));
}

// Ring pages hold other records before.
void clear_kinds(PageRef page) {
  for (uint32_t offset = 0; offset < kPageBytes; offset += kEventBytes) {
    event_at(place(page, offset)).kind = 0;
  }
}

// Puts an empty page behind the full one at `tail`. The link comes before the tail: a handler that
// comes in between sets a link of its own, and then this exchange fails.
void extend(Stream& stream, uint64_t tail, PageRef page) {
  clear_kinds(page);
  if (page_of(tail) == 0) {
    stream.deferred_first = page;
  } else {
    page_info(page_of(tail)).next.store(page, std::memory_order_relaxed);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (!stream.deferred_tail.compare_exchange_strong(tail, place(page, 0))) pool_give(page);
}

// Null when there is none.
DeferredEvent* oldest_deferred(Stream& stream) {
  for (;;) {
    const uint64_t tail = stream.deferred_tail.load(std::memory_order_relaxed);
    if (page_of(tail) == 0) return nullptr;
    uint64_t& at = stream.deferred_at;
    if (at == 0) at = place(stream.deferred_first, 0);
    if (at == tail) {
      // All is taken out: the page is used again from its beginning, unless a handler came.
      if (offset_of(tail) != 0) {
        uint64_t expected = tail;
        if (!stream.deferred_tail.compare_exchange_strong(expected, place(page_of(tail), 0))) {
          continue;
        }
        std::atomic_signal_fence(std::memory_order_seq_cst);
        at = place(page_of(tail), 0);
        if (stream.deferred_tail.load(std::memory_order_relaxed) != at) continue;
      }
      return nullptr;
    }
    if (offset_of(at) == kPageBytes) {
      const PageRef done = page_of(at);
      at = place(page_info(done).next.load(std::memory_order_relaxed), 0);
      pool_give(done);
      continue;
    }
    return &event_at(at);
  }
}

}  // namespace

bool defer_event(Stream& stream, const DeferredEvent& wanted, uint32_t* reasons) {
  for (;;) {
    uint64_t tail = stream.deferred_tail.load(std::memory_order_relaxed);
    if (page_of(tail) == 0 || offset_of(tail) == kPageBytes) {
      const PageRef page = pool_take(reasons);
      if (page == 0) return false;
      extend(stream, tail, page);
      continue;
    }
    const uint64_t ns = clock_now(clock_line());
    if (!stream.deferred_tail.compare_exchange_strong(tail, tail + kEventBytes)) continue;
    DeferredEvent& event = event_at(tail);
    event.ns = ns;
    event.function = wanted.function;
    event.place = wanted.place;
    event.by_sled = wanted.by_sled;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    event.kind = wanted.kind;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    stream.deferred.store(1, std::memory_order_relaxed);
    return true;
  }
}

bool take_deferred(Stream& stream, DeferredEvent& event) {
  DeferredEvent* oldest = oldest_deferred(stream);
  if (oldest == nullptr) return false;
  event = *oldest;
  oldest->kind = 0;
  stream.deferred_at += kEventBytes;
  return true;
}

void recover_deferred(Stream& stream) {
  const uint64_t tail = stream.deferred_tail.load(std::memory_order_relaxed);
  uint64_t& at = stream.deferred_at;
  if (at != 0 && page_of(at) == page_of(tail) && offset_of(at) > offset_of(tail)) {
    at = place(page_of(tail), 0);
  }
}

void give_deferred_page(Stream& stream, PageRef page) {
  if (page != 0) extend(stream, stream.deferred_tail.load(std::memory_order_relaxed), page);
}

void lose_deferred(Stream& stream) {
  recover_deferred(stream);
  DeferredEvent event;
  while (take_deferred(stream, event)) {
    if (is_unwind_step(event.kind)) continue;
    count_lost(stream.lane(Lane::kIndex), kLostReentry, stream.last_ns);
  }
}

void release_deferred(Stream& stream) {
  const PageRef last = page_of(stream.deferred_tail.load(std::memory_order_relaxed));
  PageRef page = last == 0                 ? 0
                 : stream.deferred_at != 0 ? page_of(stream.deferred_at)
                                           : stream.deferred_first;
  while (page != 0) {
    // The last page's link may be one that a handler set and took back.
    const PageRef next = page == last ? 0 : page_info(page).next.load(std::memory_order_relaxed);
    pool_give(page);
    page = next;
  }
  stream.deferred_first = 0;
  stream.deferred_at = 0;
  stream.deferred_tail.store(0, std::memory_order_relaxed);
}

}  // namespace collect::agent
