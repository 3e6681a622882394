// The way in for collectctl attach: in a thread that it started for this, in a process that runs.
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>

#include "agent/dynamic/module_holds.h"
#include "agent/dynamic/plans.h"
#include "agent/lifecycle.h"
#include "agent/platform/system.h"
#include "agent/ring/hooks/alternate_stack.h"
#include "agent/settings.h"
#include "agent/text.h"
#include "formats/patch/attach_request.h"

namespace collect::agent {
namespace {

using patch::AttachRequest;

constexpr uint32_t kStopFlushMs = 5000;
constexpr timespec kPause{0, 1'000'000};

// Written by another process while this one is stopped.
std::atomic<uint32_t>& state_of(AttachRequest& request) {
  return reinterpret_cast<std::atomic<uint32_t>&>(request.state);
}

void end(AttachRequest& request, patch::AttachState state, const char* message) {
  Text(request.message, sizeof request.message).add(message);
  state_of(request).store(state, std::memory_order_release);
}

// False: no jump is there, and none will be. The process that writes them may have ended in the
// middle: then the state says that there may be some, and their stubs must stay.
bool await_jumps(AttachRequest& request) {
  uint32_t state = patch::kAttachPrepared;
  for (uint32_t waits = 0; waits < patch::kAttachCommitSeconds * 1000; ++waits) {
    state = state_of(request).load(std::memory_order_acquire);
    if (state != patch::kAttachPrepared) return state != patch::kAttachFailed;
    (void)sys::nanosleep(&kPause, nullptr);
  }
  return !state_of(request).compare_exchange_strong(state, patch::kAttachFailed) &&
         state != patch::kAttachFailed;
}

// The memory of the request before this one. Its thread was about to end; while it may run in
// there, the memory stays.
void free_former(const AttachRequest& request) {
  static uint64_t memory = 0;
  static uint64_t bytes = 0;
  static long thread = 0;
  if (memory != 0 && sys::call(SYS_tgkill, sys::getpid(), thread, 0) != 0 && errno == ESRCH) {
    (void)sys::munmap(reinterpret_cast<void*>(memory), bytes);
  }
  memory = request.memory;
  bytes = request.memory_bytes;
  thread = sys::call(SYS_gettid);
}

void start(AttachRequest& request) {
  static bool attached_before = false;
  if (agent_running() && !attached_before) {
    return end(request, patch::kAttachFailed,
               "it was started with an agent: collectctl agents lists it, collectctl start records "
               "it");
  }
  attached_before = true;
  g_alternate_stacks_are_seen = false;  // threads may have had some before
  Settings settings = default_settings;
  const char* error = nullptr;
  if (!settings_from_block(request.variables, sizeof request.variables, settings, &error)) {
    return end(request, patch::kAttachFailed, error);
  }
  // The end of a child by _exit() or exec() would be seen by no one: this library came too late to
  // wrap these functions.
  settings.this_process_only = true;
  stop_agent(kStopFlushMs);
  if (settings.plans[0] != '\0') {
    uint64_t count = 0;
    ModuleHolds holds;
    if (const char* wrong =
            prepare_plans(settings.plans, ModuleHolds::hold, &holds, &request.jumps, &count)) {
      return end(request, patch::kAttachFailed, wrong);
    }
    request.jump_count = count;
    if (count != 0) {
      state_of(request).store(patch::kAttachPrepared, std::memory_order_release);
      if (!await_jumps(request)) return drop_prepared();
      use_prepared();
    }
  }
  switch (start_agent(settings)) {
    case StartError::kNone:
      return end(request, patch::kAttachDone, agent_status());
    case StartError::kPrivileged:
    case StartError::kSettings:
    case StartError::kNoMemory:
    case StartError::kNoThread:
      return end(request, patch::kAttachFailed, agent_status());
  }
}

}  // namespace
}  // namespace collect::agent

extern "C" __attribute__((visibility("default"))) void collect_agent_attach(void* block) {
  auto& request = *static_cast<collect::patch::AttachRequest*>(block);
  collect::agent::free_former(request);
  if (request.task == collect::patch::kAttachStop) {
    collect::agent::stop_agent(collect::agent::kStopFlushMs);
    return collect::agent::end(request, collect::patch::kAttachDone,
                               collect::agent::agent_status());
  }
  collect::agent::start(request);
}
