// Memory that the traced program and its drain both touch: private to the process while a thread
// drains, shared with the drain process while a process does (DRAIN_PROCESS.md). Addresses are the
// same either way, and in a forked child nothing of the parent's is left.
//
// Two kinds. A *block* is a static object, aligned and padded to whole memory pages: hooks reach it
// without a pointer. A *table* is mapped at start. Set-up is done by the thread that starts the
// agent, before other code touches what it maps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace collect::agent {

#if defined(__x86_64__)
inline constexpr size_t kSharedPage = 4096;
#elif defined(__linux__) && !defined(__ANDROID__)
inline constexpr size_t kSharedPage = 65536;  // the largest that an arm64 system may have
#else
inline constexpr size_t kSharedPage = 16384;  // that of Apple's, the larger one of Android's
#endif
// Whether there may be a drain process at all: see drain_process_absent.cc.
#if defined(__linux__) && !defined(__ANDROID__)
inline constexpr bool kHasDrainProcess = true;
#else
inline constexpr bool kHasDrainProcess = false;
#endif
inline constexpr uint32_t kMaxSharedRanges = 24;

// All ones in the process that owns the rings. Zero before the start, and in a child that shares
// them without having gone through fork()'s handlers: hooks there must not write.
struct alignas(kSharedPage) OwnerMark {
  unsigned char apart[112] = {};  // as in StateWord
  std::atomic<uint64_t> mask{0};
};
[[gnu::visibility("hidden")]] extern OwnerMark g_owner;

// Before the first share_block(); `shared` false keeps everything private. False: this system can't
// share so that forked children stay out, and `shared` must be false.
bool shared_memory_init(bool shared);
bool memory_is_shared();

// Makes a block shared in place, with what it holds. Again: no change. False: no memory.
bool share_block(void* block, size_t bytes);
template <class T>
bool share(T& block) {
  static_assert(alignof(T) == kSharedPage && sizeof(T) % kSharedPage == 0);
  return share_block(&block, sizeof block);
}

// Zeroed memory, or null. `before`: what an earlier call gave for the same table; in a forked child
// it is mapped again in its place.
void* map_table(size_t bytes, void* before = nullptr);
void unmap_table(void* table, size_t bytes);

// In a forked child: private zeroes take the place of all that is shared. False: there is no memory
// for them; the child must leave everything here alone, and its hooks do.
bool shared_memory_after_fork_in_child();

// Whether [begin, end) holds any of it.
bool is_shared_range(uintptr_t begin, uintptr_t end);

}  // namespace collect::agent
