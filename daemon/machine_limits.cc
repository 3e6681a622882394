#include "daemon/machine_limits.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <thread>

#include "daemon/ingest/limits.h"
#include "formats/core/threads.h"

namespace collect::daemon {
namespace {

// Where the address space is limited; else they are as the system has them (8 MiB of stack, and
// 64 MiB for what a thread allocates).
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr int kArenas = 2;

// Of a collector at work: beside those that io and data have for each core, one each of seals,
// names, lods, conversions, devices, watches, control plane, page, store and fleet, two of pages,
// three of metrics, five that do tasks, and those of gRPC.
constexpr unsigned kFixedThreads = 20;
constexpr unsigned kGrpcThreads = 4;
constexpr unsigned kGrpcThreadsPerCore = 2;
constexpr unsigned kMaxGrpcThreads = 16;  // further ones are for a load that few have

// About what it maps and allocates until it is ready and a program records; the sweep of
// tests/e2e/machine_faults_test.py holds it.
constexpr size_t kMemoryBytes = size_t{96} << 20;

// What a collector has open before a program records; gRPC ends the process where it gets none.
constexpr rlim_t kLeastOpenFiles = 32;

unsigned threads_at_work() {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  return kFixedThreads + std::min(kGrpcThreads + kGrpcThreadsPerCore * cores, kMaxGrpcThreads) +
         std::min(cores, ingest::kMaxIoThreads) + std::min(cores, ingest::kMaxDataThreads);
}

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

Status probe_machine() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < kLeastOpenFiles) {
    return Error{Code::kExhausted, "at most " + std::to_string(files.rlim_cur) +
                                       " files may be open, and it takes " +
                                       std::to_string(kLeastOpenFiles) +
                                       ": a limit of open files (ulimit -n, LimitNOFILE=)"};
  }
  void* const mapped = ::mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) {
    return Error{Code::kExhausted, "the system has no " + std::to_string(kMemoryBytes >> 20) +
                                       " MiB of memory to give: a limit of address space "
                                       "(ulimit -v, LimitAS=), or memory"};
  }
  // Both at once: stacks are memory too.
  const Status probed = probe_threads(threads_at_work());
  ::munmap(mapped, kMemoryBytes);
  return probed;
}

}  // namespace collect::daemon
