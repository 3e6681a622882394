// The program that the hook benchmarks trace: one small function, called again and again.
//
// hook_loop PAIRS [THREADS [REPEATS]] prints, for each repeat, the CPU nanoseconds of the first
// thread per call + return; then "rss_kb N", the memory of the process while all threads are still
// there. Built twice: hook_loop with -finstrument-functions, hook_loop_plain without; and by clang,
// hook_loop_clang, hook_loop_clang_plain, and hook_loop_xray with -fxray-instrument.
#include <pthread.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if defined(__clang__)
#define UNTRACED __attribute__((no_instrument_function, xray_never_instrument))
#else
#define UNTRACED __attribute__((no_instrument_function))
#endif

// Like a leaf of a real program: too small to hide the hooks, not to be inlined or folded.
__attribute__((noinline)) uint64_t leaf(uint64_t value) {
  value ^= value << 13;
  value ^= value >> 7;
  return value;
}

UNTRACED static uint64_t cpu_ns() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

UNTRACED static uint64_t call_many(uint64_t pairs) {
  uint64_t value = 88172645463325252ull;
  for (uint64_t i = 0; i < pairs; ++i) value = leaf(value);
  return value;
}

UNTRACED static long resident_kb() {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  long kb = 0;
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr) {
    if (std::sscanf(line, "VmRSS: %ld", &kb) == 1) break;
  }
  if (file != nullptr) std::fclose(file);
  return kb;
}

namespace {

struct Work {
  uint64_t pairs;
  std::atomic<int> done{0};
  std::atomic<bool> leave{false};
  std::atomic<uint64_t> sum{0};
};

}  // namespace

// pthreads, because std::thread's own templates would be traced too.
UNTRACED static void* other_thread(void* argument) {
  Work& work = *static_cast<Work*>(argument);
  work.sum.fetch_add(call_many(work.pairs), std::memory_order_relaxed);
  work.done.fetch_add(1);
  const timespec moment{0, 50'000'000};  // hundreds of these threads must not load the machine
  while (!work.leave.load()) nanosleep(&moment, nullptr);
  return nullptr;
}

UNTRACED int main(int argc, char** argv) {
  Work work;
  work.pairs = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1'000'000;
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 1;
  pthread_t handles[512];
  if (threads < 1 || threads > 512) return 2;
  for (int i = 1; i < threads; ++i) pthread_create(&handles[i], nullptr, other_thread, &work);
  for (int i = 0; i < repeats; ++i) {
    const uint64_t begin = cpu_ns();
    work.sum.fetch_add(call_many(work.pairs), std::memory_order_relaxed);
    const double ns = static_cast<double>(cpu_ns() - begin) / static_cast<double>(work.pairs);
    std::printf("%.4f\n", ns);
  }
  const timespec moment{0, 1'000'000};
  while (work.done.load() < threads - 1) nanosleep(&moment, nullptr);
  std::printf("rss_kb %ld\n", resident_kb());
  work.leave.store(true);
  for (int i = 1; i < threads; ++i) pthread_join(handles[i], nullptr);
  return work.sum.load() == 42 ? 1 : 0;
}
