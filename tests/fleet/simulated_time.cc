#include "tests/fleet/simulated_time.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace collect::fleet {
namespace {

std::atomic<bool> g_began{false};
std::atomic<uint64_t> g_now_ns{0};
uint64_t g_unix_at_zero_ns = 0;  // constant after begin()
thread_local int64_t g_wall_error_ns = 0;

uint64_t real_ns(clockid_t clock) {
  timespec now{};
  ::syscall(SYS_clock_gettime, clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * kNsPerS + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t moved(uint64_t ns, int64_t by) {
  return static_cast<uint64_t>(static_cast<int64_t>(ns) + by);
}

}  // namespace

void SimulatedTime::begin(uint64_t unix_ns) {
  g_unix_at_zero_ns = unix_ns;
  g_began = true;
}

uint64_t SimulatedTime::now_ns() {
  return g_now_ns.load(std::memory_order_relaxed);
}

uint64_t SimulatedTime::unix_ns() {
  return g_unix_at_zero_ns + now_ns();
}

void SimulatedTime::advance_to(uint64_t now_ns) {
  if (now_ns > g_now_ns) g_now_ns = now_ns;
}

void SimulatedTime::set_wall_error(int64_t ns) {
  g_wall_error_ns = ns;
}

uint64_t MachineClock::unix_ns() {
  return moved(SimulatedTime::unix_ns(), wall_error());
}

uint64_t real_wall_ns() {
  return real_ns(CLOCK_MONOTONIC);
}

uint64_t real_cpu_ns() {
  return real_ns(CLOCK_THREAD_CPUTIME_ID);
}

}  // namespace collect::fleet

// Instead of libc's, for the program and for the shared libraries that it uses.
extern "C" int clock_gettime(clockid_t clock, timespec* out) noexcept {
  using namespace collect::fleet;
  uint64_t ns = 0;
  switch (g_began ? clock : CLOCK_THREAD_CPUTIME_ID) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
      ns = moved(SimulatedTime::unix_ns(), g_wall_error_ns);
      break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME:
      ns = MachineClock::kBootNs + SimulatedTime::now_ns();
      break;
    default:
      return static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  }
  out->tv_sec = static_cast<time_t>(ns / kNsPerS);
  out->tv_nsec = static_cast<long>(ns % kNsPerS);
  return 0;
}

// Asio would let the kernel's clock wake its timers; without, it asks the clock at each poll.
extern "C" int timerfd_create(int, int) noexcept {
  errno = ENOSYS;
  return -1;
}
