// Events of a signal handler that interrupted one of the agent's hooks. The interrupted hook owns
// the ring, so the handler's events go into a chain of pages of their own, and the interrupted hook
// moves them into the index lane when it has written its own event.
//
// Reserve, write, commit: the tail (page and offset in one word) is advanced by a compare-exchange
// that fails when another handler came in between, and the kind is written last. So handlers that
// interrupt each other keep the order of their times, and what a handler that left by siglongjmp
// did not finish has no kind.
//
// Any hook of the stream's thread appends; the outermost hook alone takes out, and the drain thread
// when the stream has ended.
#pragma once

#include "agent/ring/stream.h"
#include "formats/atf/layout.h"

namespace collect::agent {

struct DeferredEvent {
  uint64_t ns;
  uint64_t function;  // the address: modules and filter are looked at when it is moved
  uint64_t place;     // HookFrame::place, or the stack pointer of an unwind step
  uint8_t kind;       // atf::EventKind or UnwindStep, written last; 0: not finished
  uint8_t by_sled;
  uint8_t padding[6];
};
static_assert(sizeof(DeferredEvent) == 32 && kPageBytes % sizeof(DeferredEvent) == 0);

// What is deferred, without its time. False: no page; `*reasons` says why.
bool defer_event(Stream& stream, const DeferredEvent& wanted, uint32_t* reasons);
// Takes the oldest one out; false when there is none.
bool take_deferred(Stream& stream, DeferredEvent& event);
// After the outermost hook was abandoned in the middle of taking out.
void recover_deferred(Stream& stream);
// A first page for a stream that found none in the pool, when `page` is not 0.
void give_deferred_page(Stream& stream, PageRef page);
// For a stream that has ended: counts what is still deferred, and was not recorded, as lost.
void lose_deferred(Stream& stream);
void release_deferred(Stream& stream);

}  // namespace collect::agent
