// Frames that are left without a return: by an exception, by a longjmp, with their thread. The
// shims in front of the unwinder and the C library say what happens
// (agent/shims/unwinding.cc); here the open calls are ended. AGENT.md "Exceptions".
#pragma once

#include <pthread.h>

#include <cstdint>

namespace collect::agent {

// Apart from atf::EventKind: both may be in a deferred event.
enum class UnwindStep : uint8_t {
  // Everything below `stack_pointer` was unwound, down to `from`, where the unwinder itself runs.
  // Its landing pad runs next: a cleanup, or what leads to a handler. It is in the frame of
  // `function`, as far as the unwinder knows (code that was split off has another beginning).
  kLanded = 0x11,
  // The frame at `stack_pointer` has caught it.
  kCaught = 0x12,
  // A longjmp to `stack_pointer`, from `from`; kUnknownStack: no one knows where to.
  kJumped = 0x13,
};
constexpr bool is_unwind_step(uint8_t kind) {
  return kind >= static_cast<uint8_t>(UnwindStep::kLanded);
}

inline constexpr uint64_t kUnknownStack = 0;

struct UnwindMove {
  UnwindStep step;
  uint64_t stack_pointer = 0;
  uint64_t function = 0;
  uint64_t from = 0;
};

// One that a signal handler deferred: `from` was not kept.
constexpr UnwindMove deferred_move(uint8_t kind, uint64_t stack_pointer, uint64_t function) {
  return {static_cast<UnwindStep>(kind), stack_pointer, function, 0};
}

// Threads that end by pthread_exit, or are cancelled, are unwound to their first frame, of which
// the unwinder says nothing where no frame has a landing pad. So each thread that records sets this
// key, whose destructor is to be thread_ended.
void watch_thread_ends(pthread_key_t key);
void watch_this_thread();
void thread_ended(void*);

// Whether the calling thread has open calls, perhaps: else nothing needs to be said of it.
bool follows_this_thread();
// Called on the thread that unwinds. Async-signal-safe; keeps errno. Does nothing where nothing is
// recorded.
void on_unwind(const UnwindMove& move);

}  // namespace collect::agent
