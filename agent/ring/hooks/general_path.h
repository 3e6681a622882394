// What the files of the general path share: an event on its way into the ring, while the stream is
// busy. Everything here is called by the stream's thread with the stream's busy mark set.
#pragma once

#include <cstdint>

#include "agent/ring/hooks/hooks.h"
#include "agent/ring/hooks/unwinding.h"
#include "agent/ring/stream.h"

namespace collect::agent {

// kDeferred: handlers have deferred events that come before this one.
enum class Outcome : uint8_t { kDone, kTryAgain, kDeferred, kOver };

struct Event {
  uint64_t function;
  atf::EventKind kind;
  const HookFrame& frame;
  uint64_t deferred_ns = 0;  // of a deferred event: when it was
  // Not an event, but what it says of the calls that are open.
  const UnwindMove* move = nullptr;
  bool has_frame = true;     // false: it has no detail record
  bool is_followed = false;  // the open calls know of it
  // True from the event's first check on, also while it waits: the function filter counts each
  // event once, and a call from before a change of the filter is not one of after it.
  bool is_judged = false;
  uint32_t depth = 0;
  uint64_t ns = 0;
};

// record_event.cc
Outcome record_busy(Stream& stream, Event& event);
// A call that ends without an event: the function filter and the depth count it no more.
void forget_call(Stream& stream, uint64_t function);

// unwinding.cc: keeps the open calls. Records the exceptions that come before the event, of which
// it may make one.
Outcome follow(Stream& stream, Event& event);

}  // namespace collect::agent
