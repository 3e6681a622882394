#include "agent/drain/drain_process.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/drain/drain_process_memory.h"
#include "agent/drain/link/control.h"
#include "agent/drain/link/status.h"
#include "agent/drain/ship/traced_process.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/platform/system.h"
#include "agent/transport/descriptor.h"

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

namespace collect::agent {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kFirstStackBytes = 16 * 1024;
constexpr int kOwnDescriptors = 10;  // above those that programs count on being standard

// Their pages are touched in the drain process's copy alone.
alignas(64) unsigned char g_stack[kStackBytes];
alignas(64) unsigned char g_first_stack[kFirstStackBytes];

struct Start {
  DrainThread* drain = nullptr;
  pid_t process = 0;
  OwnObject own;
  int alive = -1;  // descriptor of the file that shows that the process has its memory
};
constinit Start g_start;

// The mapping of it, and the process that has it: a forked child has something else there, or
// nothing. The starting thread's.
void* g_alive = nullptr;
pid_t g_alive_owner = 0;

constinit TracedProcess g_traced;

bool traced_has_memory() {
  return g_traced.has_memory();
}

// A copy of this process, without a signal at its end and not followed by debuggers, that does
// nothing but `entry` on a stack of its own; its number, or -1 and errno.
long copy_process(void (*entry)(), unsigned char* stack_end) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "call *%[entry]\n\t"
      "ud2\n"
      "1:"
      : "=a"(result)
      : "a"(SYS_clone), "D"(CLONE_UNTRACED), "S"(stack_end), "d"(0), "r"(r10),
        "r"(r8), [entry] "b"(entry)
      : "rcx", "r11", "memory");
#else
  register long x8 asm("x8") = SYS_clone;
  register long result asm("x0") = CLONE_UNTRACED;
  register unsigned char* x1 asm("x1") = stack_end;
  register long x2 asm("x2") = 0;
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = 0;
  register void (*x5)() asm("x5") = entry;
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x29, xzr\n\t"
      "blr x5\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result)
      : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
      : "x30", "memory");
#endif
  return sys::checked(result);
}

// Before it has taken over: the process continues with a thread.
[[noreturn]] void give_up() {
  Drainer expected = Drainer::kNone;
  (void)g_control.drainer.compare_exchange_strong(expected, Drainer::kThread);
  sys::end_process(1);
}

bool is_relative(const char* path) {
  return path[0] != '\0' && path[0] != '/';
}

bool needs_directory(const Settings& settings) {
  constexpr char kUnix[] = "unix:";
  if (is_relative(settings.token_file) || is_relative(settings.spool)) return true;
  return std::strncmp(settings.address, kUnix, sizeof kUnix - 1) == 0 &&
         is_relative(settings.address + sizeof kUnix - 1);
}

[[noreturn]] void run_drain_process() {
  DrainThread& drain = *g_start.drain;
  descriptors_after_fork();
  g_control.drain_pid.store(sys::getpid(), std::memory_order_relaxed);
  log_as(g_start.process);
  (void)sys::call(SYS_prctl, PR_SET_NAME, "collect-drain");
  const rlimit no_core{0, 0};
  (void)sys::call(SYS_prlimit64, 0, RLIMIT_CORE, &no_core, nullptr);
  int pidfd = static_cast<int>(sys::call(SYS_pidfd_open, g_start.process, 0));
  if (pidfd < 0) give_up();
  pidfd = sys::fcntl(pidfd, F_DUPFD_CLOEXEC, kOwnDescriptors);
  const int alive = sys::fcntl(g_start.alive, F_DUPFD_CLOEXEC, kOwnDescriptors);
  if (pidfd < 0 || alive < 0) give_up();
  g_traced.watch(g_start.process, pidfd, alive);
  set_writers_alive(traced_has_memory);
  keep_descriptors(pidfd, alive, drain.settings().log);
  if (!needs_directory(drain.settings())) (void)sys::chdir("/");
  rename_command_line();
  drop_program_memory(g_start.own);
  drain.watch_switches(g_start.process);
  Drainer expected = Drainer::kNone;
  if (!g_control.drainer.compare_exchange_strong(expected, Drainer::kDrainProcess))
    sys::end_process(0);
  drain.run_for(g_traced);
  g_control.ended.store(1, std::memory_order_release);
  sys::end_process(0);
}

// Between the process and its drain process: it ends at once, so that the drain process is no one's
// child. In a group of its own for the signals of the terminal, and not in a session of its own:
// Linux shares processors out to sessions (autogroup), and one beside threads that wait for it,
// awake, was seen to get none for 13 s.
[[noreturn]] void run_between() {
  (void)sys::call(SYS_setpgid, 0, 0);
  sys::end_process(copy_process(run_drain_process, g_stack + kStackBytes) > 0 ? 0 : 1);
}

// The file stays empty: it is mapped, and never touched.
bool map_alive(int fd) {
  void* const mapped = sys::mmap(nullptr, kSharedPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  if (sys::madvise(mapped, kSharedPage, MADV_DONTFORK) != 0) {
    (void)sys::munmap(mapped, kSharedPage);
    return false;
  }
  if (g_alive_owner == g_start.process) (void)sys::munmap(g_alive, kSharedPage);
  g_alive = mapped;
  g_alive_owner = g_start.process;
  return true;
}

int make_alive_file() {
  constexpr unsigned kFlags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int fd = static_cast<int>(sys::call(SYS_memfd_create, "collect-alive", kFlags | MFD_NOEXEC_SEAL));
  if (fd < 0) fd = static_cast<int>(sys::call(SYS_memfd_create, "collect-alive", kFlags));
  if (fd < 0) return -1;
  const int high = sys::fcntl(fd, F_DUPFD_CLOEXEC, kDescriptorFloor);
  if (high >= 0) {
    (void)sys::close(fd);
    fd = high;
  }
  if (map_alive(fd)) return fd;
  (void)sys::close(fd);
  return -1;
}

// The process's own signal handlers must not run in the two copies.
bool clone_and_reap() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // No signal at its end, and invisible to those who wait for any child.
  const long pid = copy_process(run_between, g_first_stack + kFirstStackBytes);
  int status = 0;
  long ended = 0;
  do {
    ended = pid > 0 ? sys::call(SYS_wait4, pid, &status, __WCLONE, nullptr) : -1;
  } while (ended < 0 && pid > 0 && errno == EINTR);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return pid > 0 && (ended != pid || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

bool wait_for_drain_process() {
  const uint64_t deadline_ms = monotonic_ms() + kMaxDrainProcessStartMs;
  for (;;) {
    Drainer who = g_control.drainer.load(std::memory_order_acquire);
    if (who != Drainer::kNone) return who == Drainer::kDrainProcess;
    const int32_t pid = g_control.drain_pid.load(std::memory_order_relaxed);
    if ((pid != 0 && is_process_over(pid)) || monotonic_ms() >= deadline_ms) {
      return !g_control.drainer.compare_exchange_strong(who, Drainer::kThread);
    }
    const timespec pause{0, 100000};
    sys::nanosleep(&pause, nullptr);
  }
}

}  // namespace

const char* start_drain_process(DrainThread& drain) {
  g_start = {&drain, sys::getpid(), find_own_object(), -1};
  const int alive = make_alive_file();
  if (alive < 0) return "the system gives no file in memory";
  g_start.alive = alive;
  const bool started = clone_and_reap();
  (void)sys::close(alive);
  if (!started) return "the system lets it start no process";
  return wait_for_drain_process() ? nullptr : "it did not come up";
}

}  // namespace collect::agent
