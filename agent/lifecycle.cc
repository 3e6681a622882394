#include "agent/lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/drain/drain.h"
#include "agent/own_object.h"
#include "agent/plans.h"
#include "agent/ring/sleds.h"
#include "agent/ring/stream.h"

namespace collect::agent {
namespace {

enum class Phase : uint32_t { kOff, kStarting, kRunning, kStopping, kStopped };

std::atomic<Phase> phase{Phase::kOff};
std::atomic<const char*> status{"the agent was not started"};
std::atomic<pid_t> owner{0};
Settings started_with;

constexpr char kNotFollowed[] = "the agent is off: this process was not to be recorded";

constexpr char kPrivileged[] =
    "the agent is off: the program runs with raised privileges (set-uid, set-gid, capabilities)";

void before_fork() {
  drain_before_fork();
  sleds_before_fork();
}

void after_fork_in_parent() {
  sleds_after_fork();
  drain_after_fork_in_parent();
}

// In the child only the forking thread exists. Nothing is started here: most children exec at once.
// The first event starts the agent anew; the rings were not copied (MADV_WIPEONFORK).
void after_fork_in_child() {
  sleds_after_fork_in_child();
  tls_stream = nullptr;
  // Its epoch goes on, so that no thread's copy passes for a new one.
  const uint64_t state = g_state.load(std::memory_order_relaxed);
  const bool apart = shared_memory_after_fork_in_child();
  drain_after_fork_in_child(apart);
  if (!apart) return;
  recorder_after_fork_in_child();
  if (phase.load(std::memory_order_relaxed) != Phase::kRunning) return;
  if (started_with.this_process_only) {
    g_state.store((state & ~kStateFlags) + kStateEpoch);
    status.store(kNotFollowed, std::memory_order_relaxed);
    phase.store(Phase::kOff, std::memory_order_relaxed);
    return;
  }
  g_state.store((state & ~kStateFlags) + kStateEpoch + (kStateRecording | kStateForked));
  sleds_in();  // a call has to come for the agent to start
}

void log_sleds(const Settings& settings) {
  if (const char* sentence = sleds_problem()) log_line(settings.log, sentence);
}

// `fresh`: no thread of this process has recorded anything yet.
StartError start_parts(const Settings& settings, bool fresh) {
  if (!fresh && recorder_ready()) {
    recorder_configure(settings);
  } else if (!recorder_init(settings)) {
    status.store("the agent is off: no memory for its rings");
    return StartError::kNoMemory;
  }
  owner.store(getpid(), std::memory_order_relaxed);
  if (!drain_start(settings)) {
    status.store(drain_status());
    sleds_out();
    return StartError::kNoThread;
  }
  if (memory_is_shared()) {
    sleds_in();
  } else if (!is_recording()) {
    sleds_out();
  }
  log_sleds(settings);
  drain_hold_for_filter();
  return StartError::kNone;
}

}  // namespace

StartError start_agent(const Settings& settings) {
  if (is_privileged()) return StartError::kPrivileged;
  Phase expected = Phase::kOff;
  if (!phase.compare_exchange_strong(expected, Phase::kStarting)) {
    expected = Phase::kStopped;
    if (!phase.compare_exchange_strong(expected, Phase::kStarting)) return StartError::kNone;
  }
  static std::atomic<bool> fork_handled{false};
  if (!fork_handled.exchange(true))
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  started_with = settings;
  const StartError error = start_parts(settings, false);
  // A forked child has what is left of the time.
  if (error == StartError::kNone && started_with.max_time_since_ns == 0) {
    started_with.max_time_since_ns = now_ns();
  }
  phase.store(error == StartError::kNone ? Phase::kRunning : Phase::kOff);
  return error;
}

void stop_agent(uint32_t timeout_ms) {
  if (!agent_running()) return;
  Phase expected = Phase::kRunning;
  if (!phase.compare_exchange_strong(expected, Phase::kStopping)) return;
  drain_stop(timeout_ms);
  sleds_out();
  status.store("the agent was stopped");
  phase.store(Phase::kStopped);
}

bool agent_running() {
  return phase.load(std::memory_order_acquire) == Phase::kRunning &&
         g_owner.mask.load(std::memory_order_relaxed) != 0;
}

bool restart_in_child() {
  // Several threads of the child may come here at once; one starts, the others record a moment
  // later.
  static std::atomic<pid_t> restarted{0};
  const pid_t pid = getpid();
  pid_t before = restarted.load();
  if (before == pid || !restarted.compare_exchange_strong(before, pid)) return false;
  // A vfork child runs in the parent's memory: it must not start anything here.
  if (owner.load(std::memory_order_relaxed) == pid) return false;
  g_state.store((g_state.load() & ~kStateFlags) + kStateEpoch);
  if (start_parts(started_with, true) == StartError::kNone) return is_recording();
  phase.store(Phase::kOff);
  return false;
}

void before_exit(const int* code) {
  if (!agent_running() || owner.load(std::memory_order_relaxed) != getpid()) return;
  if ((g_state.load(std::memory_order_relaxed) & kStateForked) != 0) return;
  if (code != nullptr) drain_note_exit(*code);
  if (drain_outlives_process()) return;
  const int saved_errno = errno;
  stop_agent(started_with.exit_flush_ms);
  errno = saved_errno;
}

const char* agent_status() {
  if (phase.load(std::memory_order_acquire) == Phase::kRunning) {
    // With a collector there, what is missing is worth more words than that all is well.
    const char* sleds = sleds_problem();
    return sleds != nullptr && drain_connected() ? sleds : drain_status();
  }
  if (is_privileged()) return kPrivileged;
  return status.load(std::memory_order_relaxed);
}

}  // namespace collect::agent

namespace {

__attribute__((constructor)) void start_from_environment() {
  if (collect::agent::is_privileged()) return;
  collect::agent::Settings settings = collect::agent::default_settings;
  const char* error = nullptr;
  if (!collect::agent::settings_from_environment(settings, &error)) {
    collect::agent::log_line(settings.log, error);
    return;
  }
  if (settings.log) {
    collect::agent::warn_of_unknown_variables(
        [](const char* sentence) { collect::agent::log_line(true, sentence); });
  }
  if (settings.role == collect::agent::Role::kNone) return;
  if (settings.child_of != 0 && settings.child_of != getppid()) {
    collect::agent::status.store(collect::agent::kNotFollowed);
    collect::agent::log_line(settings.log, collect::agent::kNotFollowed);
    return;
  }
#if defined(COLLECT_PATCH_PLANS)
  // Before there is another thread.
  if (settings.plans[0] != '\0') collect::agent::apply_plans(settings.plans);
#endif
  (void)collect::agent::start_agent(settings);
}

#if defined(__GLIBC__)
void stop_with_code(int code, void*) {
  collect::agent::before_exit(&code);
}
#endif

// Runs in exit(), after the program's own destructors.
__attribute__((destructor)) void stop_at_exit() {
#if defined(__GLIBC__)
  // The C library says with which code the program ends to functions alone that are registered for
  // it; one that is registered now is called next, if its code is still there then.
  if (collect::agent::find_own_object().stays_loaded && on_exit(stop_with_code, nullptr) == 0) {
    return;
  }
#endif
  collect::agent::before_exit(nullptr);
}

}  // namespace
