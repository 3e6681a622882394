// Functions that shims_test.cc calls. Those of traced.cc are built with -finstrument-functions,
// those of sled_callers.S have XRay's sleds. None is inlined, and none calls its argument as its
// last act.
#pragma once

#include <setjmp.h>

#include <cstdint>

namespace collect::agent {

using Callee = void (*)();

// What the last function of traced.cc saw of itself.
struct Seen {
  const void* return_address;
  const void* frame;
};
extern Seen seen;

void traced_leaf();
void traced_call(Callee callee);
void traced_throw();                                // an int
void traced_catch(Callee callee);                   // any int; then calls traced_leaf
void traced_cleanup(Callee callee, Callee at_end);  // whose end runs in an exception too
// _setjmp(target), then calls `callee`; when that has jumped back, calls `after`.
void traced_target(jmp_buf& target, Callee callee, Callee after);

}  // namespace collect::agent

extern "C" {
uint64_t sled_leaf(uint64_t value);   // value * 3 + 1
uint64_t sled_other(uint64_t value);  // value + 7
void sled_call(void (*callee)());
uint64_t sled_tail(uint64_t value);  // jumps to sled_other
double sled_add(double a, double b);
// Six arguments; the sum of them all, each times its place. In rdx the last one.
uint64_t sled_sum(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f);
}
