#include "tests/agent/shims/traced.h"

#define NOT_A_TAIL_CALL asm volatile("" ::: "memory")

namespace collect::agent {

Seen seen;

[[gnu::noinline]] void traced_leaf() {
  seen = {__builtin_return_address(0), __builtin_frame_address(0)};
}

[[gnu::noinline]] void traced_call(Callee callee) {
  callee();
  NOT_A_TAIL_CALL;
}

[[gnu::noinline]] void traced_throw() {
  throw 17;
}

[[gnu::noinline]] void traced_catch(Callee callee) {
  try {
    callee();
  } catch (int) {
    traced_leaf();
  }
  NOT_A_TAIL_CALL;
}

namespace {

struct AtEnd {
  Callee callee;
  __attribute__((no_instrument_function)) explicit AtEnd(Callee wanted) : callee(wanted) {}
  __attribute__((no_instrument_function)) ~AtEnd() { callee(); }
};

}  // namespace

[[gnu::noinline]] void traced_cleanup(Callee callee, Callee at_end) {
  AtEnd end(at_end);
  callee();
  NOT_A_TAIL_CALL;
}

[[gnu::noinline]] void traced_target(jmp_buf& target, Callee callee, Callee after) {
  if (_setjmp(target) == 0) {
    callee();
  } else {
    after();
  }
  NOT_A_TAIL_CALL;
}

}  // namespace collect::agent
