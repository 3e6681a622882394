// clone() of the host program: threads that have no thread-local memory of their own are not
// recorded (ring/shared_threads.h). The C library's own threads and processes do not come this way.
// Not in the archive: in a static program there would be no one to pass the call on to.
#include <dlfcn.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/types.h>

#include <cerrno>

#include "agent/lifecycle.h"
#include "agent/ring/hooks/shared_threads.h"

namespace {

using Entry = int (*)(void*);
using Clone = int (*)(Entry, void*, int, void*, ...);

Clone clone_behind = nullptr;

// When the library is loaded: a caller may not allow what the dynamic linker does.
__attribute__((constructor)) void find_clone() {
  clone_behind = reinterpret_cast<Clone>(dlsym(RTLD_NEXT, "clone"));
}

bool shares_thread_memory(int flags) {
  return (flags & CLONE_VM) != 0 && (flags & (CLONE_SETTLS | CLONE_VFORK)) == 0;
}

}  // namespace

extern "C" __attribute__((visibility("default"), no_instrument_function)) int clone(
    Entry entry, void* stack, int flags, void* argument, ...) {
  va_list more;
  va_start(more, argument);
  auto* const parent_number = va_arg(more, pid_t*);
  void* const thread_memory = va_arg(more, void*);
  auto* const child_number = va_arg(more, pid_t*);
  va_end(more);
  if (clone_behind == nullptr) find_clone();
  if (clone_behind == nullptr) {
    errno = ENOSYS;
    return -1;
  }
  const bool is_shared = shares_thread_memory(flags) && collect::agent::agent_running();
  if (is_shared) collect::agent::begin_shared_thread();
  const int made =
      clone_behind(entry, stack, flags, argument, parent_number, thread_memory, child_number);
  if (is_shared) collect::agent::end_begin_shared_thread(made);
  return made;
}
