#include "agent/lifecycle.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/auxv.h>
#endif

#include <new>

#include "agent/drain/drain.h"
#include "agent/dynamic/plans.h"
#include "agent/own_object.h"
#include "agent/platform/system.h"
#include "agent/ring/hooks/hooks.h"
#include "agent/ring/sleds/sleds.h"
#include "agent/ring/stream.h"
#include "agent/run_records.h"
#include "agent/shims/library_calls.h"

namespace collect::agent {
namespace {

enum class Phase : uint32_t { kOff, kStarting, kRunning, kStopping, kStopped };

std::atomic<Phase> phase{Phase::kOff};
std::atomic<const char*> status{"the agent was not started"};
std::atomic<pid_t> owner{0};
constinit SettingsMemory settings_memory;
constexpr Settings& started_with = settings_memory.settings;

// That came before the agent could start: see starts_by_early_event().
std::atomic<uint64_t> early_events{0};
std::atomic<uint32_t> environment_was_read{0};

// Holds its own address once the dynamic linker has done its work on this object.
struct Relocated {
  const Relocated* volatile self;
};
Relocated relocated{&relocated};

constexpr char kNotFollowed[] = "the agent is off: this process was not to be recorded";

constexpr char kFiltered[] =
    "the agent is off: its parent has a filter of system calls, which might end this process";

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
// The first event starts the agent again; the rings were not copied (MADV_WIPEONFORK).
void after_fork_in_child() {
  sleds_after_fork_in_child();
  tls_stream = nullptr;
  // Its epoch continues, so that no thread's copy passes for a new one.
  const uint64_t state = g_state.load(std::memory_order_relaxed);
  const bool is_filtered = program_is_filtered();
  enter_run_in_child(!started_with.this_process_only, is_filtered ? kFiltered : nullptr);
  const bool apart = shared_memory_after_fork_in_child();
  drain_after_fork_in_child(apart);
  if (!apart) return;
  recorder_after_fork_in_child();
  if (phase.load(std::memory_order_relaxed) != Phase::kRunning) {
    g_state.store((state & ~kStateFlags) + kStateEpoch);
    return;
  }
  if (started_with.this_process_only || is_filtered) {
    g_state.store((state & ~kStateFlags) + kStateEpoch);
    status.store(is_filtered ? kFiltered : kNotFollowed, std::memory_order_relaxed);
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
    note_run_failure("no memory for its rings");
    return StartError::kNoMemory;
  }
  owner.store(sys::getpid(), std::memory_order_relaxed);
  if (redirect_library_calls != nullptr) redirect_library_calls(settings.library_calls);
  note_run_start();
  if (!drain_start(settings)) {
    status.store(drain_status());
    note_run_failure(drain_status());
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

// Not from a resolver of an indirect function, which runs while the dynamic linker is at work: this
// object, the C library or, in a static program, the thread's own memory may not be there yet. Not
// from another thread of a library's: the agent's start needs stack, and peace while it changes
// code.
bool can_start_early() {
  if (relocated.self != &relocated || environ == nullptr) return false;
#if defined(__linux__)
  if (getauxval(AT_BASE) == 0) return false;
#endif
  return environment_was_read.load(std::memory_order_relaxed) == 0 &&
         os_thread_id() == static_cast<uint32_t>(sys::getpid());
}

void start_as_environment_says() {
  if (is_privileged()) return;
  Settings settings = default_settings;
  const char* error = nullptr;
  const bool is_understood = settings_from_environment(settings, &error);
  const bool is_meant = settings.child_of == 0 || settings.child_of == sys::getppid();
  if (is_meant && (!is_understood || settings.role != Role::kNone)) enter_run(settings);
  if (!is_understood) {
    note_run_failure(error);
    log_line(settings.log, error);
    return;
  }
  if (settings.log) {
    warn_of_unknown_variables([](const char* sentence) { log_line(true, sentence); });
  }
  if (settings.role == Role::kNone) return;
  if (!is_meant) {
    status.store(kNotFollowed);
    log_line(settings.log, kNotFollowed);
    return;
  }
#if defined(COLLECT_PATCH_PLANS)
  // Before there is another thread.
  if (settings.plans[0] != '\0') apply_plans(settings.plans);
#endif
  (void)start_agent(settings);
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
  new (&started_with) Settings(settings);
  const StartError error = start_parts(settings, false);
  if (const uint64_t early = early_events.exchange(0, std::memory_order_relaxed);
      early != 0 && error == StartError::kNone && settings.start_recording) {
    count_lost_without_stream(early);
  }
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

void start_early() {
  if (environment_was_read.exchange(1) == 0) start_as_environment_says();
  // No later event has to look again. (A copy of this process that fork()'s handlers did
  // not see finds a zero here, too.)
  uint64_t none = 0;
  (void)g_state.compare_exchange_strong(none, kStateEpoch);
}

bool starts_by_early_event() {
  const bool is_early =
      environment_was_read.load() == 0 || phase.load(std::memory_order_relaxed) == Phase::kStarting;
  if (is_early && !can_start_early()) {
    early_events.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  const int saved_errno = errno;
  start_early();
  errno = saved_errno;
  return is_early && is_recording();
}

bool restart_in_child() {
  // Several threads of the child may come here at once; one starts, the others record a moment
  // later.
  static std::atomic<pid_t> restarted{0};
  const pid_t pid = sys::getpid();
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
  if (!agent_running()) return;
  if ((g_state.load(std::memory_order_relaxed) & kStateForked) != 0) return;
  const bool outlives = drain_outlives_process();
  // The end of the first process of a PID namespace kills the others, a drain process too.
  const bool is_first = owner.load(std::memory_order_relaxed) == 1;
  if (outlives && !is_first) {
    // No question to the system: the program may have forbidden it.
    if (code != nullptr) drain_note_exit(*code);
    return;
  }
  const int saved_errno = errno;
  const bool may_call = drain_may_call_at_exit();
  if (may_call && owner.load(std::memory_order_relaxed) != sys::getpid()) return;
  if (code != nullptr) drain_note_exit(*code);
  if (may_call) {
    stop_agent(outlives ? kThreadFlushMs : started_with.exit_flush_ms);
    if (is_first) await_namespace(kNamespaceFlushMs);
  } else if (!outlives) {
    drain_stop_awake(started_with.exit_flush_ms);
  }
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

// Before constructors without a priority: those of the program, where the agent is linked into it.
#if defined(__APPLE__)
__attribute__((constructor)) void
#else
__attribute__((constructor(101))) void
#endif
start_from_environment() {
  collect::agent::start_early();
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
