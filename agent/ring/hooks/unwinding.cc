#include "agent/ring/hooks/unwinding.h"

#include "agent/ring/clock.h"
#include "agent/ring/hooks/general_path.h"
#include "agent/ring/open_calls.h"

namespace collect::agent {
namespace {

constexpr uint64_t kFlags = kOpenCallUnwinding | kOpenCallLanded;

// glibc has room for the values of so many keys in each thread; for more it allocates, which a hook
// must not. The others have room for all.
constexpr pthread_key_t kMostKeys = 32;

std::atomic<bool> thread_ends_watched{false};
pthread_key_t thread_end_key;

uint64_t stack_of(const OpenCall& call) {
  return (call.place & ~kPlaceOfSled) + kPlaceBelow;
}
uint64_t address_of(const OpenCall& call) {
  return call.function & kOpenCallAddress;
}
bool is_call(const OpenCall& call) {
  return call.function != 0;
}

// The newest call ends by an exception. It has no detail: its registers are gone.
Outcome end_by_exception(Stream& stream, uint64_t deferred_ns) {
  const OpenCall call = newest_open_call(stream);
  pop_open_call(stream);
  constexpr HookFrame kNoFrame;
  Event event{address_of(call), atf::EventKind::kException, kNoFrame};
  // With a time of its own it does not look for events of handlers; those come after it.
  event.deferred_ns = deferred_ns != 0 ? deferred_ns : clock_now(clock_line());
  event.has_frame = false;
  Outcome outcome = Outcome::kTryAgain;
  while (outcome == Outcome::kTryAgain) outcome = record_busy(stream, event);
  return outcome;
}

// The newest call is no more, and how it ended no one can say.
void end_unseen(Stream& stream) {
  const OpenCall call = newest_open_call(stream);
  pop_open_call(stream);
  forget_call(stream, address_of(call));
}

// Whether the calls like `newest`, those with the same place, belong to the frame that was landed
// in: its stack pointer may be lower by now (an array of variable length, arguments on the stack).
bool is_landing_frame(OpenCall& newest, const UnwindMove& move) {
  if (!is_call(newest)) return false;
  if (stack_of(newest) == move.stack_pointer) return true;
  OpenCall* call = &newest;
  while (is_call(*call) && call->place == newest.place) {
    if (address_of(*call) == move.function) return true;
    call = &older_open_call(*call);
  }
  return false;
}

Outcome landed(Stream& stream, const UnwindMove& move, uint64_t deferred_ns) {
  OpenCall* living = &newest_open_call(stream);
  OpenCall* last_dead = nullptr;
  // Below `from` there is no frame of this stack: that call is of another stack.
  while (is_call(*living) && stack_of(*living) < move.stack_pointer &&
         stack_of(*living) >= move.from) {
    last_dead = living;
    living = &older_open_call(*living);
  }
  const bool is_exact = stack_of(*living) == move.stack_pointer;
  if (is_exact) stream.hooks_are_direct = true;
  // Where a hook of the program's own passes calls on to ours, they seem to be deeper.
  if (last_dead != nullptr && address_of(*last_dead) == move.function && !is_exact &&
      !stream.hooks_are_direct && (last_dead->place & kPlaceOfSled) == 0) {
    living = last_dead;
  }
  uint64_t highest = 0;
  while (&newest_open_call(stream) != living) {
    const uint64_t place = newest_open_call(stream).place;
    // Deeper than a call that came later: it was gone before.
    if (place < highest) {
      end_unseen(stream);
      continue;
    }
    highest = place;
    if (end_by_exception(stream, deferred_ns) == Outcome::kOver) return Outcome::kOver;
  }
  const bool is_here = living == last_dead || is_landing_frame(*living, move);
  stream.landed_stack = is_here ? move.stack_pointer : 0;
  if (!is_here) return Outcome::kDone;
  const uint64_t place = living->place;
  while (is_call(*living) && living->place == place) {
    living->function |= kFlags;
    living = &older_open_call(*living);
  }
  return Outcome::kDone;
}

void caught(Stream& stream, const UnwindMove& move) {
  OpenCall* call = &newest_open_call(stream);
  if ((call->function & kOpenCallUnwinding) == 0) return;
  // Not if a destructor that the cleanup runs has caught something: it is deeper.
  const bool is_here = move.stack_pointer >= stack_of(*call) ||
                       (stream.landed_stack != 0 && move.stack_pointer >= stream.landed_stack);
  const uint64_t place = call->place;
  while (is_here && call->place == place && (call->function & kOpenCallUnwinding) != 0) {
    call->function &= ~kOpenCallUnwinding;
    call = &older_open_call(*call);
  }
}

void jumped(Stream& stream, const UnwindMove& move) {
  for (;;) {
    const OpenCall& call = newest_open_call(stream);
    if (!is_call(call)) return;
    const bool is_gone = move.stack_pointer == kUnknownStack ||
                         (stack_of(call) < move.stack_pointer && stack_of(call) >= move.from);
    if (!is_gone) return;
    end_unseen(stream);
  }
}

// The newest open call of this function that may return at `place`; function 0: none. Those above
// it are over: they are deeper, or were inlined into its frame.
OpenCall& find_call(Stream& stream, uint64_t function, uint64_t place) {
  OpenCall* call = &newest_open_call(stream);
  while (is_call(*call) && address_of(*call) != function) {
    if (call->place > place) {
      static constinit OpenCall none{0, 0};
      return none;
    }
    call = &older_open_call(*call);
  }
  return *call;
}

Outcome returned(Stream& stream, Event& event) {
  OpenCall& call = find_call(stream, event.function, event.frame.place);
  if (!is_call(call)) return Outcome::kDone;  // it began before the recording
  while (&newest_open_call(stream) != &call) {
    if ((newest_open_call(stream).function & kOpenCallLanded) == 0) {
      end_unseen(stream);
    } else if (end_by_exception(stream, event.deferred_ns) == Outcome::kOver) {
      return Outcome::kOver;
    }
  }
  // gcc runs the hook of a return in the cleanup of a frame that is unwound. Sleds are passed by
  // returns alone.
  if (!event.frame.by_sled && (call.function & kOpenCallUnwinding) != 0) {
    event.kind = atf::EventKind::kException;
    event.has_frame = false;
  }
  pop_open_call(stream);
  return Outcome::kDone;
}

}  // namespace

void watch_thread_ends(pthread_key_t key) {
  if (key >= kMostKeys) return;
  thread_end_key = key;
  thread_ends_watched.store(true, std::memory_order_release);
}

void watch_this_thread() {
  if (!thread_ends_watched.load(std::memory_order_acquire)) return;
  (void)pthread_setspecific(thread_end_key, &thread_end_key);
}

// Calls that are open when a thread returns from its first function are none.
void thread_ended(void*) {
  on_unwind({UnwindStep::kLanded, UINT64_MAX});
}

Outcome follow(Stream& stream, Event& event) {
  if (event.move != nullptr) {
    switch (event.move->step) {
      case UnwindStep::kLanded:
        return landed(stream, *event.move, event.deferred_ns);
      case UnwindStep::kCaught:
        caught(stream, *event.move);
        break;
      case UnwindStep::kJumped:
        jumped(stream, *event.move);
        break;
    }
    return Outcome::kDone;
  }
  if (event.frame.place == 0) return Outcome::kDone;
  if (event.kind == atf::EventKind::kReturn) return returned(stream, event);
  // Without memory for it, its end is recorded as the hooks say it.
  (void)push_open_call(stream, {event.function, event.frame.place});
  return Outcome::kDone;
}

}  // namespace collect::agent
