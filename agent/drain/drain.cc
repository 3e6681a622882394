#include "agent/drain/drain.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#if defined(__linux__)
#include <sys/prctl.h>
#endif
#include <time.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "agent/drain/drain_process.h"
#include "agent/drain/drain_thread.h"
#include "agent/drain/link/control.h"
#include "agent/drain/link/status.h"
#include "agent/platform/monotonic_clock.h"
#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/run_records.h"
#include "agent/transport/descriptor.h"

namespace collect::agent {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
// The thread keeps its deadline itself. If the system does not let it run, exit() continues without
// it.
constexpr uint32_t kStopSlackMs = 3000;

// More than a megabyte of buffers and tables, touched as far as used. Constructed again at each
// start.
alignas(DrainThread) unsigned char g_memory[sizeof(DrainThread)];

// Written by the thread that starts and stops the agent.
std::atomic<DrainThread*> g_drain{nullptr};  // null: there is no thread
bool g_by_drain_process = false;

void* run_thread(void* drain) {
#if defined(__APPLE__)
  pthread_setname_np("collect-drain");
#else
  (void)sys::call(SYS_prctl, PR_SET_NAME, "collect-drain");
#endif
  auto* const self = static_cast<DrainThread*>(drain);
  self->run();
  const bool leaves_process = self->leaves_process();
  g_control.ended.store(1, std::memory_order_release);
  // What the C library does when the last thread of a process ends; it does not see it, because of
  // us.
  if (leaves_process) exit(0);
  return nullptr;
}

size_t stack_bytes_of(const pthread_attr_t& attributes) {
  size_t bytes = 0;
  return pthread_attr_getstacksize(&attributes, &bytes) == 0 ? bytes : kStackBytes;
}

int create_thread(DrainThread* drain) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  // Its end is seen by g_control.ended: a program that ends may not be allowed to wait for a
  // thread.
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const size_t usual_bytes = stack_bytes_of(attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  pthread_t thread;
  int error = pthread_create(&thread, &attributes, run_thread, drain);
  // A program with large thread-local variables needs more of every stack.
  if (error == EINVAL && pthread_attr_setstacksize(&attributes, usual_bytes) == 0) {
    error = pthread_create(&thread, &attributes, run_thread, drain);
  }
  pthread_attr_destroy(&attributes);
  return error;
}

// The host's signals are the host's threads' business.
int create_thread_without_signals(DrainThread* drain) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int error = create_thread(drain);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

// A drain process that someone killed does not end by its own word.
bool drain_process_died() {
  return g_by_drain_process && is_process_over(g_control.drain_pid.load(std::memory_order_relaxed));
}

bool wait_for_end(uint64_t deadline_ms) {
  while (!g_control.ended.load(std::memory_order_acquire)) {
    if (monotonic_ms() >= deadline_ms || drain_process_died()) return false;
    const timespec pause{0, 500000};
    sys::nanosleep(&pause, nullptr);
  }
  return true;
}

// Waits for the end in a thread that must not ask the system for anything.
void wait_for_end_awake(uint64_t deadline_ms) {
  while (!g_control.ended.load(std::memory_order_acquire) && monotonic_ms() < deadline_ms) {
    sys::relax();
  }
}

void end_drain(DrainThread* drain, uint64_t deadline_ms) {
  if (wait_for_end(deadline_ms)) {
    g_drain.store(nullptr, std::memory_order_release);
  } else if (drain_process_died()) {
    // What it had is no one's: this copy of the drain gives the rings back.
    drain->drop_recording();
    g_control.connected.store(false, std::memory_order_relaxed);
    set_status("the agent was stopped; its drain process had died");
    g_drain.store(nullptr, std::memory_order_release);
  }
}

void reset_control() {
  g_control.stop.store(0, std::memory_order_relaxed);
  g_control.exit_code.store(0, std::memory_order_relaxed);
  g_control.exit_ns.store(0, std::memory_order_relaxed);
  g_control.exit_thread.store(0, std::memory_order_relaxed);
  g_control.connected.store(false, std::memory_order_relaxed);
  g_control.listen_port.store(0, std::memory_order_relaxed);
  g_control.ended.store(0, std::memory_order_relaxed);
  g_control.holds.store(false, std::memory_order_relaxed);
  g_control.filter_asked.store(false, std::memory_order_relaxed);
  g_control.released_ns.store(0, std::memory_order_relaxed);
  g_control.drainer.store(Drainer::kNone, std::memory_order_relaxed);
  g_control.drain_pid.store(0, std::memory_order_relaxed);
}

// By a drain process if that is wanted and possible, else by a thread. Null or a static sentence.
const char* begin_draining(const Settings& settings, DrainThread* drain) {
  set_status("starting");
  g_by_drain_process = false;
  if (settings.drain == DrainBy::kProcess) {
    const char* error =
        kHasDrainProcess ? "memory can't be shared with it" : "this system has none";
    if (memory_is_shared() && share(g_control) && share_status())
      error = start_drain_process(*drain);
    g_by_drain_process = error == nullptr;
    if (g_by_drain_process) {
      // Here, and not there: this process may have ended before the other one runs again.
      note_run_outlives();
      return nullptr;
    }
    set_status("a thread drains, a crash may lose events; no drain process: ", error);
  }
  return create_thread_without_signals(drain) == 0 ? nullptr : "its thread could not be started";
}

}  // namespace

constinit DrainControl g_control;

bool drain_start(const Settings& settings) {
  const int saved_errno = errno;
  if (DrainThread* const before = g_drain.load(std::memory_order_acquire); before != nullptr) {
    // It may have ended by itself, because a collector refused it for good.
    if (!g_control.ended.load(std::memory_order_acquire) && !drain_process_died()) return true;
    end_drain(before, monotonic_ms());
  }
  auto* const drain = new (g_memory) DrainThread;
  const char* error = drain->prepare(settings);
  if (error == nullptr) {
    reset_control();
    g_control.holds.store(drain->wants_filter() && settings.start_recording,
                          std::memory_order_relaxed);
    error = begin_draining(settings, drain);
    if (error == nullptr) {
      g_drain.store(drain, std::memory_order_release);
    } else {
      drain->drop_recording();
    }
  }
  if (error != nullptr) set_status("the agent is off: ", error);
  errno = saved_errno;
  return error == nullptr;
}

void drain_hold_for_filter() {
  const int saved_errno = errno;
  const uint64_t begin_ms = monotonic_ms();
  while (g_control.holds.load(std::memory_order_acquire)) {
    const bool asked = g_control.filter_asked.load(std::memory_order_relaxed);
    if (monotonic_ms() - begin_ms >= (asked ? kMaxFilterHoldMs : kFilterHoldMs) ||
        g_control.ended.load(std::memory_order_acquire) || drain_process_died()) {
      g_control.released_ns.store(now_ns(), std::memory_order_release);
      g_control.holds.store(false, std::memory_order_relaxed);
      break;
    }
    const timespec pause{0, 200000};
    sys::nanosleep(&pause, nullptr);
  }
  errno = saved_errno;
}

void drain_stop(uint32_t timeout_ms) {
  DrainThread* const drain = g_drain.load(std::memory_order_acquire);
  if (drain == nullptr) return;
  const int saved_errno = errno;
  drain->request_stop(timeout_ms);
  end_drain(drain, monotonic_ms() + timeout_ms + kStopSlackMs);
  errno = saved_errno;
}

bool drain_may_call_at_exit() {
  g_control.at_exit.store(AtExit::kNotKnown, std::memory_order_relaxed);
  g_control.exit_thread.store(os_thread_id(), std::memory_order_release);
  const uint64_t deadline_ms = monotonic_ms() + kStopSlackMs;
  while (!g_control.ended.load(std::memory_order_acquire) && monotonic_ms() < deadline_ms) {
    const AtExit answer = g_control.at_exit.load(std::memory_order_acquire);
    if (answer != AtExit::kNotKnown) return answer == AtExit::kMayCall;
    sys::relax();
  }
  return false;
}

void drain_stop_awake(uint32_t timeout_ms) {
  DrainThread* const drain = g_drain.load(std::memory_order_acquire);
  if (drain == nullptr) return;
  drain->request_stop(timeout_ms);
  wait_for_end_awake(monotonic_ms() + timeout_ms + kStopSlackMs);
}

bool drain_connected() {
  return g_drain.load(std::memory_order_acquire) != nullptr &&
         g_control.connected.load(std::memory_order_relaxed);
}

const char* drain_status() {
  return status();
}

uint16_t drain_listen_port() {
  if (g_drain.load(std::memory_order_acquire) == nullptr) return 0;
  return static_cast<uint16_t>(g_control.listen_port.load(std::memory_order_relaxed));
}

void drain_note_exit(int code) {
  g_control.exit_ns.store(now_ns(), std::memory_order_relaxed);
  g_control.exit_code.store(kExitCodeKnown | static_cast<uint8_t>(code), std::memory_order_release);
}

bool drain_outlives_process() {
  return g_by_drain_process && g_drain.load(std::memory_order_acquire) != nullptr;
}

void log_line(bool enabled, const char* text) {
  enable_log(enabled);
  log_line(text);
}

void drain_before_fork() {
  descriptors_before_fork();
}
void drain_after_fork_in_parent() {
  descriptors_after_fork();
}

void drain_after_fork_in_child(bool apart) {
  const int saved_errno = errno;
  descriptors_after_fork();
  DrainThread* const drain = g_drain.load(std::memory_order_relaxed);
  if (drain != nullptr) drain->abandon();
  g_drain.store(nullptr, std::memory_order_relaxed);
  if (apart) reset_control();
  g_by_drain_process = false;
  errno = saved_errno;
}

}  // namespace collect::agent
