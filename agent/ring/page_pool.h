// The process-wide pool of ring pages: one mapping taken at start, handed out page by page.
//
// Any thread takes pages, the drain thread gives them back. Lock-free, no allocation, no system
// call, safe in a signal handler. The drain faults pages in ahead of the threads (pool_prepare). A
// thread that is faster than the drain takes a page that was never used before, and faults it in by
// writing to it; when the drain has found that the system gives no memory, it gets none: that shows
// as "no page" and is counted.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "agent/ring/recorder.h"

namespace collect::agent {

// Two lines of 64 bytes on x86-64, one of 128 on Apple arm64.
inline constexpr size_t kCacheLine = 128;

using PageRef = uint32_t;  // page number + 1; 0 is none

struct alignas(kCacheLine) PageInfo {
  // Producer's. Readers look at `next` first: once it is set, nothing else changes any more.
  std::atomic<uint32_t> committed;  // bytes of whole records; released after each record
  std::atomic<PageRef> next;        // the lane's following page; released when this one is closed
  uint32_t begin;                   // first byte that counts (pre-roll may start inside)
  std::atomic<uint32_t> records;    // of the detail lane; index pages derive it
  uint64_t first_seq;
  uint64_t lost_total;
  uint64_t lost_first_ns;
  uint64_t lost_last_ns;
  uint64_t newest_ns;  // of the detail lane: its last record's time
  uint32_t lost_reasons;
  uint16_t flags;
  std::atomic<PageRef> free_next;  // the pool's

  // Drain thread's.
  alignas(kCacheLine) uint32_t sent;  // bytes handed out, from the page's start
  uint32_t sent_records;
  std::atomic<uint32_t> pinned;  // handed out and not acknowledged: must not be overwritten
};

// Maps the pool and its page table; halves the size down to kMinBufferMb when memory is short.
bool pool_init(uint32_t buffer_mb);
uint64_t pool_bytes();

// A page with its PageInfo cleared, or 0 when none is free. `*reasons` gets the LostReason then.
PageRef pool_take(uint32_t* reasons);
void pool_give(PageRef page);
// Faults pages in before they are needed: as many as are in use now, kMaxReadyPages at most, so
// that a program that records little takes little memory. Where the system gives none, no thread
// takes an unused page until it does again. [drain]
void pool_prepare();
inline constexpr uint32_t kMaxReadyPages = 64;
uint64_t pool_used_bytes();
// Whether a good part of it is free, for which threads that found no page wait.
bool pool_has_room();
uint32_t pool_free_pages();
// A thread that found no page sleeps for so long, or until wake_for_pages() has some for it. The
// more threads sleep, the longer: all of them together wake by themselves every kLookNs at most.
void sleep_for_page(uint64_t least_ns);
inline constexpr uint64_t kLookNs = 50'000;
inline constexpr uint64_t kMaxSleepNs = 500'000'000;
// Wakes as many threads as there are pages for. Cheap when none sleeps. [drain]
void wake_for_pages();
// Another number whenever a page was given back or taken again; the same while nothing moves.
uint32_t pool_turns();

PageInfo& page_info(PageRef page);
uint8_t* page_bytes(PageRef page);  // kPageBytes, aligned to kPageBytes

}  // namespace collect::agent
