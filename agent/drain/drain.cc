#include "agent/drain/drain.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "agent/drain/drain_thread.h"
#include "agent/drain/status.h"

namespace collect::agent {
namespace {

constexpr size_t kStackBytes = 256 * 1024;
// The thread keeps its deadline itself. If the system does not let it run, exit() goes on without
// it.
constexpr uint32_t kStopSlackMs = 3000;

// More than a megabyte of buffers and tables, touched as far as used. Constructed anew at each
// start.
alignas(DrainThread) unsigned char g_memory[sizeof(DrainThread)];

// Written by the thread that starts and stops the agent.
std::atomic<DrainThread*> g_drain{nullptr};  // null: there is no thread
pthread_t g_thread;
std::atomic<bool> g_ended{false};  // written by the drain thread, as its last act

void* run_thread(void* drain) {
#if defined(__APPLE__)
  pthread_setname_np("collect-drain");
#else
  pthread_setname_np(pthread_self(), "collect-drain");
#endif
  auto* const self = static_cast<DrainThread*>(drain);
  self->run();
  const bool leaves_process = self->leaves_process();
  g_ended.store(true, std::memory_order_release);
  // What the C library does when the last thread of a process ends; it does not see it, because of
  // us.
  if (leaves_process) exit(0);
  return nullptr;
}

int create_thread(DrainThread* drain) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  int error = pthread_create(&g_thread, &attributes, run_thread, drain);
  // A program with large thread-local variables needs more of every stack.
  if (error == EINVAL) error = pthread_create(&g_thread, nullptr, run_thread, drain);
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

bool wait_for_end(uint64_t deadline_ms) {
  while (!g_ended.load(std::memory_order_acquire)) {
    if (monotonic_ms() >= deadline_ms) return false;
    const timespec pause{0, 500000};
    nanosleep(&pause, nullptr);
  }
  return true;
}

void end_thread(uint64_t deadline_ms) {
  if (wait_for_end(deadline_ms)) {
    pthread_join(g_thread, nullptr);
    g_drain.store(nullptr, std::memory_order_release);
  }
}

}  // namespace

bool drain_start(const Settings& settings) {
  const int saved_errno = errno;
  if (g_drain.load(std::memory_order_acquire) != nullptr) {
    // It may have ended by itself, because a collector refused it for good.
    if (!g_ended.load(std::memory_order_acquire)) return true;
    end_thread(monotonic_ms());
  }
  auto* const drain = new (g_memory) DrainThread;
  const char* error = drain->prepare(settings);
  if (error == nullptr) {
    g_ended.store(false, std::memory_order_relaxed);
    set_status("starting");
    if (create_thread_without_signals(drain) == 0) {
      g_drain.store(drain, std::memory_order_release);
    } else {
      drain->drop_recording();
      error = "its thread could not be started";
    }
  }
  if (error != nullptr) set_status("the agent is off: ", error);
  errno = saved_errno;
  return error == nullptr;
}

void drain_stop(uint32_t timeout_ms) {
  DrainThread* const drain = g_drain.load(std::memory_order_acquire);
  if (drain == nullptr) return;
  const int saved_errno = errno;
  drain->request_stop(timeout_ms);
  end_thread(monotonic_ms() + timeout_ms + kStopSlackMs);
  errno = saved_errno;
}

bool drain_connected() {
  const DrainThread* const drain = g_drain.load(std::memory_order_acquire);
  return drain != nullptr && drain->is_connected();
}

const char* drain_status() {
  return status();
}

uint16_t drain_listen_port() {
  const DrainThread* const drain = g_drain.load(std::memory_order_acquire);
  return drain != nullptr ? drain->listen_port() : 0;
}

void log_line(bool enabled, const char* text) {
  enable_log(enabled);
  log_line(text);
}

void drain_before_fork() {
  sockets_before_fork();
}
void drain_after_fork_in_parent() {
  sockets_after_fork();
}

void drain_after_fork_in_child() {
  const int saved_errno = errno;
  sockets_after_fork();
  DrainThread* const drain = g_drain.load(std::memory_order_relaxed);
  if (drain != nullptr) drain->abandon();
  g_drain.store(nullptr, std::memory_order_relaxed);
  g_ended.store(false, std::memory_order_relaxed);
  errno = saved_errno;
}

}  // namespace collect::agent
