#include "daemon/machine/limited_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cerrno>

#include "formats/core/text/sanitized.h"

namespace collect {

Status limit_process(uint64_t memory_bytes, int niceness) {
  // Files are mapped, not read into memory: a limit of the address space would be one of the
  // capture.
  const rlimit memory{memory_bytes, memory_bytes};
  if (!kIsSanitized && ::setrlimit(RLIMIT_DATA, &memory) != 0) {
    return errno_error(errno, "RLIMIT_DATA");
  }
  const rlimit no_core{0, 0};
  if (::setrlimit(RLIMIT_CORE, &no_core) != 0) return errno_error(errno, "RLIMIT_CORE");
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error(errno, "PR_SET_PDEATHSIG");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "no_new_privs");
  // It may take longer on a busy machine; the recording may not.
  (void)::setpriority(PRIO_PROCESS, 0, niceness);
  return {};
}

}  // namespace collect
