// A thread that gives itself a name by pthread_setname_np (by prctl: prctl.cc): the moment, and the
// name of a thread that ends before the drain looks at it. Names that others give, and those of
// direct system calls, the drain finds by itself while the thread lives (ring/thread_watch.cc). The
// library is before the C library in the search order when it is preloaded, or linked before
// it. Not in the archive.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

#include "agent/ring/stream.h"

namespace {

using SetName = int (*)(pthread_t, const char*);

SetName set_name_behind = nullptr;

// When the library is loaded: a caller may not allow what the dynamic linker does.
__attribute__((constructor)) void find_set_name() {
  set_name_behind = reinterpret_cast<SetName>(dlsym(RTLD_NEXT, "pthread_setname_np"));
}

}  // namespace

extern "C" __attribute__((visibility("default"), no_instrument_function)) int pthread_setname_np(
    pthread_t thread, const char* name) {
  if (set_name_behind == nullptr) find_set_name();
  if (set_name_behind == nullptr) return ENOSYS;
  const int error = set_name_behind(thread, name);
  if (error == 0 && thread == pthread_self()) {
    collect::agent::note_own_name(name);
  }
  return error;
}
