// The calls that are open on a thread: what hooks have seen begin and not end. The frames that an
// exception or a longjmp leaves run no hook (clang, XRay), or the hook of a return (gcc), so a
// landing needs to know which calls they were. unwinding.h says what is done with them.
//
// A stack in chunks, the thread's alone, not shared with a drain process. Each stream slot keeps
// its chunks for the next thread. The short path pushes and pops with no look at a limit that it
// would have to load: a chunk is aligned to its size, and below its first call is one of function
// 0.
#pragma once

#include <cstdint>

namespace collect::agent {

struct Stream;

struct OpenCall {
  uint64_t function;  // its address, and OpenCallFlags
  uint64_t place;  // the stack pointer in the function at its hook, less kPlaceBelow; kPlaceOfSled
};
static_assert(sizeof(OpenCall) == 16);

// What hooks of the compiler have at hand: on x86-64 their own frame, which is two words below the
// caller's.
#if defined(__x86_64__)
inline constexpr uint64_t kPlaceBelow = 16;
#else
inline constexpr uint64_t kPlaceBelow = 0;
#endif

// Places are aligned to words. Of a sled, which is at the function's first instruction.
inline constexpr uint64_t kPlaceOfSled = 1;

enum OpenCallFlags : uint64_t {
  // An exception came to rest in its frame and was not caught since: the hook of its return means
  // that the cleanup of that frame has run.
  kOpenCallUnwinding = uint64_t{1} << 62,
  // An exception came to rest in its frame: perhaps for a call that was inlined around it.
  kOpenCallLanded = uint64_t{1} << 63,
  kOpenCallAddress = kOpenCallUnwinding - 1,
};

inline constexpr uint64_t kOpenCallChunkBytes = 16 * 1024;
inline constexpr uint32_t kMaxOpenCallChunks = 1024;          // of a thread: a million calls
inline constexpr uint64_t kOpenCallBytes = 64 * 1024 * 1024;  // of all threads, touched as used

[[gnu::always_inline]] static inline bool open_calls_full(const OpenCall* top) {
  return (reinterpret_cast<uint64_t>(top) & (kOpenCallChunkBytes - 1)) == 0;
}

// Address space for all of them, so that no hook has to ask for it: at the start, once. Halves the
// size where there is less; with none, no call is followed.
void open_calls_init();

// Not for the short path. False: there is no memory for it, or too many are open.
bool push_open_call(Stream& stream, const OpenCall& call);
void pop_open_call(Stream& stream);
// Function 0: there is none.
OpenCall& newest_open_call(Stream& stream);
OpenCall& older_open_call(OpenCall& call);

}  // namespace collect::agent
