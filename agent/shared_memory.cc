#include "agent/shared_memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/platform/system.h"

namespace collect::agent {
namespace {

struct Range {
  void* at;
  size_t bytes;
};

// Written by the thread that starts the agent, and by a forked child's only one.
bool shared_now = false;
Range ranges[kMaxSharedRanges];
uint32_t range_count = 0;

// Whether the kernel gives a forked child zeroes for private memory; else map_table does.
#ifdef MADV_WIPEONFORK
constexpr bool kWipesOnFork = true;
#else
constexpr bool kWipesOnFork = false;
#endif

constexpr int kReadWrite = PROT_READ | PROT_WRITE;

void* map(void* at, size_t bytes, bool shared) {
  const int place = at != nullptr ? MAP_FIXED : 0;
  const int kind = shared ? MAP_SHARED : MAP_PRIVATE;
  void* const mapped =
      sys::mmap(at, bytes, kReadWrite, kind | MAP_ANONYMOUS | MAP_NORESERVE | place, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
#ifdef MADV_WIPEONFORK
  if (!shared) (void)sys::madvise(mapped, bytes, MADV_WIPEONFORK);
#endif
#ifdef MADV_DONTDUMP
  // Rings are large, and who has a crash to look into has the recording.
  if (shared) (void)sys::madvise(mapped, bytes, MADV_DONTDUMP);
#endif
  return mapped;
}

// A page of its own, of which a forked child gets zeroes instead of a copy. False: the system has
// no such pages.
bool keep_owner_from_children() {
#if defined(__linux__) && defined(MADV_WIPEONFORK)
  if (static_cast<size_t>(sysconf(_SC_PAGESIZE)) > kSharedPage) return false;
  void* const mark = sys::mmap(&g_owner, sizeof g_owner, kReadWrite,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return mark != MAP_FAILED && sys::madvise(mark, sizeof g_owner, MADV_WIPEONFORK) == 0;
#else
  return false;
#endif
}

bool note(void* at, size_t bytes) {
  if (range_count == kMaxSharedRanges) return false;
  ranges[range_count++] = {at, bytes};
  return true;
}

}  // namespace

constinit OwnerMark g_owner;

bool shared_memory_init(bool shared) {
  const bool is_apart = keep_owner_from_children();
  if (shared && !(kHasDrainProcess && is_apart)) return false;
  shared_now = shared;
  g_owner.mask.store(UINT64_MAX, std::memory_order_relaxed);
  return true;
}

bool memory_is_shared() {
  return shared_now;
}

bool share_block(void* block, size_t bytes) {
  if (!shared_now || is_shared_range(reinterpret_cast<uintptr_t>(block),
                                     reinterpret_cast<uintptr_t>(block) + bytes)) {
    return true;
  }
#if defined(__linux__)
  // Filled elsewhere and moved into place in one step: other threads may be looking.
  void* const filled = map(nullptr, bytes, true);
  if (filled == nullptr) return false;
  memcpy(filled, block, bytes);
  if (!note(block, bytes) ||
      sys::mremap(filled, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, block) == MAP_FAILED) {
    (void)sys::munmap(filled, bytes);
    return false;
  }
  return true;
#else
  return false;
#endif
}

void* map_table(size_t bytes, void* before) {
  if (before != nullptr && !shared_now && kWipesOnFork) return before;
  void* const table = map(before, bytes, shared_now);
  if (table == nullptr || !shared_now) return table;
  if (note(table, bytes)) return table;
  (void)sys::munmap(table, bytes);
  return nullptr;
}

void unmap_table(void* table, size_t bytes) {
  for (uint32_t i = 0; i < range_count; ++i) {
    if (ranges[i].at == table) ranges[i] = ranges[--range_count];
  }
  (void)sys::munmap(table, bytes);
}

bool shared_memory_after_fork_in_child() {
  for (uint32_t i = 0; shared_now && i < range_count; ++i) {
    if (map(ranges[i].at, ranges[i].bytes, false) == nullptr) return false;
  }
  range_count = 0;
  shared_now = false;
  // The child writes to memory of its own now. So does its child, which has zeroes here too.
  g_owner.mask.store(UINT64_MAX, std::memory_order_relaxed);
  return true;
}

bool is_shared_range(uintptr_t begin, uintptr_t end) {
  for (uint32_t i = 0; i < range_count; ++i) {
    const auto at = reinterpret_cast<uintptr_t>(ranges[i].at);
    if (begin < at + ranges[i].bytes && end > at) return true;
  }
  return false;
}

}  // namespace collect::agent
