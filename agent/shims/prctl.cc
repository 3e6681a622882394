// prctl() of the host program. In seccomp's strict mode, and by PR_SET_TSC, the processor's counter
// is forbidden to the thread, and with it every clock that takes no system call: such a thread is
// not recorded from there on, and its calls are counted as lost, without a stream. PR_SET_NAME is
// the name that a thread gives itself (ring/thread_watch.cc). Not in the archive.
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/prctl.h>

#include "agent/platform/system.h"
#include "agent/ring/stream.h"

namespace agent = collect::agent;

namespace {

using Prctl = int (*)(int, unsigned long, unsigned long, unsigned long, unsigned long);

Prctl prctl_behind = nullptr;

// When the library is loaded: a caller may not allow what the dynamic linker does.
__attribute__((constructor)) void find_prctl() {
  prctl_behind = reinterpret_cast<Prctl>(dlsym(RTLD_NEXT, "prctl"));
}

}  // namespace

extern "C" __attribute__((visibility("default"), no_instrument_function)) int prctl(int option,
                                                                                    ...) {
  va_list more;
  va_start(more, option);
  const unsigned long second = va_arg(more, unsigned long);
  const unsigned long third = va_arg(more, unsigned long);
  const unsigned long fourth = va_arg(more, unsigned long);
  const unsigned long fifth = va_arg(more, unsigned long);
  va_end(more);
  bool forbids = option == PR_SET_SECCOMP && second == SECCOMP_MODE_STRICT;
#if defined(PR_SET_TSC)
  forbids = forbids || (option == PR_SET_TSC && second == PR_TSC_SIGSEGV);
#endif
  agent::Stream* const before = agent::tls_stream;
  if (forbids && before != &agent::g_ignored) agent::tls_stream = &agent::g_without_clock;
  const int result = prctl_behind != nullptr ? prctl_behind(option, second, third, fourth, fifth)
                                             : agent::sys::call_for<int>(SYS_prctl, option, second,
                                                                         third, fourth, fifth);
  if (forbids && result != 0) agent::tls_stream = before;
  if (option == PR_SET_NAME && result == 0) {
    agent::note_own_name(reinterpret_cast<const char*>(second));
  }
  return result;
}
