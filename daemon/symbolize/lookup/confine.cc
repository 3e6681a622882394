#include "daemon/symbolize/lookup/confine.h"

#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "daemon/symbolize/limits.h"
#include "formats/core/text/sanitized.h"

namespace collect::symbolize {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kArchitecture = 0;
#endif

// Reading what is open, memory (qsort asks how much there is), the answer, signals of the
// demangler's timer, the end.
constexpr uint32_t kAllowed[] = {
    __NR_read,           __NR_pread64,       __NR_lseek, __NR_fstat,      __NR_newfstatat,
    __NR_fcntl,          __NR_write,         __NR_close, __NR_brk,        __NR_munmap,
    __NR_mremap,         __NR_madvise,       __NR_futex, __NR_getrandom,  __NR_rt_sigreturn,
    __NR_rt_sigprocmask, __NR_clock_gettime, __NR_exit,  __NR_exit_group, __NR_restart_syscall,
    __NR_setitimer,      __NR_sysinfo,
};
// Allowed without PROT_EXEC.
constexpr uint32_t kMapping[] = {__NR_mmap, __NR_mprotect};

// libdw looks for other files of a program's debug information: it is informed that it may not.
constexpr uint32_t kNotAllowed[] = {
    __NR_openat,
    __NR_readlinkat,
#if defined(__NR_readlink)
    __NR_readlink,
#endif
};

constexpr uint32_t kRefuse = SECCOMP_RET_KILL_PROCESS;

sock_filter statement(uint16_t code, uint32_t k) {
  return {code, 0, 0, k};
}

sock_filter jump(uint16_t test, uint32_t k, uint8_t if_true, uint8_t if_false) {
  return {static_cast<uint16_t>(BPF_JMP | test | BPF_K), if_true, if_false, k};
}

sock_filter load(size_t offset) {
  return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}

sock_filter leave(uint32_t verdict) {
  return statement(BPF_RET | BPF_K, verdict);
}

std::vector<sock_filter> program() {
  std::vector<sock_filter> code = {
      load(offsetof(seccomp_data, arch)),
      jump(BPF_JEQ, kArchitecture, 1, 0),
      leave(kRefuse),
      load(offsetof(seccomp_data, nr)),
  };
  for (const uint32_t number : kAllowed) {
    code.push_back(jump(BPF_JEQ, number, 0, 1));
    code.push_back(leave(SECCOMP_RET_ALLOW));
  }
  for (const uint32_t number : kMapping) {
    code.push_back(jump(BPF_JEQ, number, 0, 4));
    code.push_back(load(offsetof(seccomp_data, args) + 2 * sizeof(uint64_t)));
    code.push_back(jump(BPF_JSET, PROT_EXEC, 0, 1));
    code.push_back(leave(kRefuse));
    code.push_back(leave(SECCOMP_RET_ALLOW));
  }
  for (const uint32_t number : kNotAllowed) {
    code.push_back(jump(BPF_JEQ, number, 0, 1));
    code.push_back(leave(SECCOMP_RET_ERRNO | EACCES));
  }
  code.push_back(leave(kRefuse));
  return code;
}

// Where the soft limit is reached the kernel sends a signal first; `spare` later it kills.
Status limit(decltype(RLIMIT_CPU) resource, uint64_t most, const char* name, uint64_t spare = 0) {
  rlimit now{};
  if (::getrlimit(resource, &now) != 0) return errno_error(errno, name);
  // Never more than the limit that this process inherited. RLIM_INFINITY is the largest.
  const rlimit wanted{std::min<rlim_t>(now.rlim_max, most),
                      std::min<rlim_t>(now.rlim_max, most + spare)};
  if (::setrlimit(resource, &wanted) != 0) return errno_error(errno, name);
  return {};
}

Status drop_capabilities() {
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  // A locked-down service has none, and may not even make the call that would drop them.
  __user_cap_data_struct held[2] = {};
  if (::syscall(SYS_capget, &header, held) == 0 && held[0].permitted == 0 &&
      held[1].permitted == 0) {
    return {};
  }
  const __user_cap_data_struct none[2] = {};
  // Ambient ones go with the permitted.
  if (::syscall(SYS_capset, &header, none) != 0) return errno_error(errno, "capset");
  return {};
}

}  // namespace

Status limit_process() {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error(errno, "PR_SET_PDEATHSIG");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return errno_error(errno, "no_new_privs");
  if (::prctl(PR_SET_DUMPABLE, 0) != 0) return errno_error(errno, "PR_SET_DUMPABLE");
  COLLECT_TRY(drop_capabilities());
  if (!kIsSanitized) COLLECT_TRY(limit(RLIMIT_AS, kLookupMemoryBytes, "RLIMIT_AS"));
  COLLECT_TRY(limit(RLIMIT_CPU, kLookupCpuSeconds, "RLIMIT_CPU", kLookupCpuSpareSeconds));
  COLLECT_TRY(limit(RLIMIT_FSIZE, 0, "RLIMIT_FSIZE"));
  COLLECT_TRY(limit(RLIMIT_CORE, 0, "RLIMIT_CORE"));
  COLLECT_TRY(limit(RLIMIT_NOFILE, kLookupDescriptors, "RLIMIT_NOFILE"));
  return limit(RLIMIT_NPROC, 0, "RLIMIT_NPROC");
}

std::string limit_system_calls() {
  if (kIsSanitized) return "no filter of system calls: built with a sanitizer";
  if (kArchitecture == 0) return "no filter of system calls: none is written for this processor";
  std::vector<sock_filter> code = program();
  sock_fprog filter{static_cast<uint16_t>(code.size()), code.data()};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0) return {};
  return std::string("no filter of system calls: ") + std::strerror(errno);
}

}  // namespace collect::symbolize
