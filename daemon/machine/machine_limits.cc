#include "daemon/machine/machine_limits.h"

#include <fmt/core.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <string>

#include "formats/core/threads.h"

namespace collect {
namespace {

// Where the address space is limited; else they are as the system has them (8 MiB of stack, and
// 64 MiB for what a thread allocates).
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr int kArenas = 2;

bool is_limited(int resource) {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

}  // namespace

void fit_into_address_space() {
  if (!is_limited(RLIMIT_AS)) return;
  pthread_attr_t attributes;
  if (::pthread_attr_init(&attributes) != 0) return;
  if (::pthread_attr_setstacksize(&attributes, kStackBytes) == 0) {
    (void)::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_destroy(&attributes);
  (void)::mallopt(M_ARENA_MAX, kArenas);
}

Status probe_machine(const MachineNeeds& needs) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < needs.open_files) {
    return Error{Code::kExhausted, fmt::format("at most {} files may be open, and it takes {}: a "
                                               "limit of open files (ulimit -n, LimitNOFILE=)",
                                               files.rlim_cur, needs.open_files)};
  }
  void* const mapped = ::mmap(nullptr, needs.memory_bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return Error{Code::kExhausted,
                 fmt::format("the system has no {} MiB of memory to give: a limit of address space "
                             "(ulimit -v, LimitAS=), or memory",
                             needs.memory_bytes >> 20)};
  }
  // Both at once: stacks are memory too.
  const Status probed = probe_threads(needs.threads);
  ::munmap(mapped, needs.memory_bytes);
  return probed;
}

}  // namespace collect
