// A function filter comes into force, and with it the sleds that it takes.
#include "agent/ring/function_filter.h"
#include "agent/ring/recorder.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/state.h"
#include "agent/shared_memory.h"

namespace collect::agent {

FunctionFilterChange commit_function_filter() {
  const uint32_t generation = make_function_filter();
  // XRay: while code is patched, one function's calls may come without its returns, and the other
  // way round. So it is done while the filter in force leaves these functions out, and hooks then
  // look away from them (kStateSledsChanging): what comes in before the change, what goes after it.
  const bool patches = !memory_is_shared() && is_recording() && sled_counts().functions != 0;
  if (patches) {
    quiesce(change_state(kStateSledsChanging, 0));
    sleds_let_in(generation);
  }
  set_function_filter(generation);
  quiesce(change_state(0, kStateSledsChanging));
  FunctionFilterChange change{};
  change.at_ns = now_ns();
  if (patches) {
    quiesce(change_state(kStateSledsChanging, 0));
    sleds_in();
    change_state(0, kStateSledsChanging);
  }
  change.functions_patched = sled_counts().patched;
  return change;
}

}  // namespace collect::agent
