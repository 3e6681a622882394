#include "daemon/inject/code_writes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>

#include "daemon/inject/process_threads.h"
#include "daemon/inject/traced_thread.h"

namespace collect::inject {
namespace {

// Jumps that are close together are read and written at once.
constexpr uint64_t kMaxRunBytes = 64u << 10;
constexpr uint64_t kMaxGap = 1'024;

using Jumps = std::vector<patch::AttachJump>;
using Clock = std::chrono::steady_clock;

bool is_of_ended_thread(const Status& status) {
  return !status.ok() && status.error().code == Code::kNotFound;
}

// All threads of the process, also those that others start meanwhile.
class StoppedProcess {
 public:
  explicit StoppedProcess(pid_t pid) : pid_(pid) {}

  Status stop(Deadline deadline) {
    for (bool found = true; found;) {
      found = false;
      for (const pid_t tid : threads_of(pid_)) {
        if (threads_.contains(tid)) continue;
        auto thread = TracedThread::seize(tid);
        if (!thread.ok() && thread.error().code == Code::kNotFound) continue;
        if (!thread.ok()) return thread.error();
        if (is_of_ended_thread(thread->interrupt())) continue;
        threads_.emplace(tid, std::move(*thread));
        found = true;
      }
      COLLECT_TRY(await_all(deadline));
    }
    return {};
  }

  // Out of the windows. The number of threads that were in one.
  Result<size_t> move_out_of(const Jumps& jumps, Deadline deadline) {
    size_t moved = 0;
    for (auto& [tid, thread] : threads_) {
      auto registers = thread.registers();
      if (!registers.ok()) return registers.error();
      if (window_at(jumps, registers->rip) == nullptr) continue;
      ++moved;
      for (int steps = 0; window_at(jumps, registers->rip) != nullptr; ++steps) {
        if (steps == kMaxSteps || thread.in_group_stop()) {
          return Error{Code::kUnavailable,
                       fmt::format("thread {} stays where its code would be changed", tid)};
        }
        COLLECT_TRY(thread.step(deadline));
        registers = thread.registers();
        if (!registers.ok()) return registers.error();
      }
    }
    return moved;
  }

  size_t size() const { return threads_.size(); }

 private:
  Status await_all(Deadline deadline) {
    for (auto one = threads_.begin(); one != threads_.end();) {
      Status stopped = one->second.await_stop(deadline);
      if (stopped.ok()) stopped = one->second.mend_interruption();
      if (!stopped.ok() && !is_of_ended_thread(stopped)) return stopped;
      one = stopped.ok() ? std::next(one) : threads_.erase(one);
    }
    return {};
  }

  pid_t pid_;
  std::map<pid_t, TracedThread> threads_;
};

// The number of jumps from `first` on that are close together.
size_t run_from(const Jumps& jumps, size_t first) {
  size_t count = 1;
  while (first + count < jumps.size() &&
         jumps[first + count].address - jumps[first + count - 1].address <= kMaxGap &&
         jumps[first + count].address + patch::kMaxWindowBytes - jumps[first].address <=
             kMaxRunBytes) {
    ++count;
  }
  return count;
}

template <class Use>
Status for_each_run(const ProcessMemory& memory, const Jumps& jumps, Use use) {
  std::vector<uint8_t> code;
  for (size_t first = 0; first < jumps.size();) {
    const size_t count = run_from(jumps, first);
    const uint64_t begin = jumps[first].address;
    const patch::AttachJump& last = jumps[first + count - 1];
    code.resize(last.address + last.bytes - begin);
    COLLECT_TRY(memory.read(begin, code.data(), code.size()));
    for (size_t i = first; i < first + count; ++i) {
      COLLECT_TRY(use(jumps[i], code.data() + (jumps[i].address - begin)));
    }
    COLLECT_TRY(use.done(begin, code));
    first += count;
  }
  return {};
}

struct Compare {
  Status operator()(const patch::AttachJump& jump, const uint8_t* there) const {
    if (std::memcmp(there, jump.original, jump.bytes) == 0) return {};
    return Error{Code::kDamaged, "the code of the process was changed by someone else"};
  }
  Status done(uint64_t, const std::vector<uint8_t>&) const { return {}; }
};

struct Write {
  const ProcessMemory& memory;
  Status operator()(const patch::AttachJump& jump, uint8_t* there) const {
    std::memcpy(there, jump.jump, sizeof jump.jump);
    return {};
  }
  Status done(uint64_t begin, const std::vector<uint8_t>& code) const {
    return memory.write(begin, code.data(), code.size());
  }
};

}  // namespace

const patch::AttachJump* window_at(const std::vector<patch::AttachJump>& jumps, uint64_t address) {
  const auto after = std::upper_bound(
      jumps.begin(), jumps.end(), address,
      [](uint64_t value, const patch::AttachJump& jump) { return value < jump.address; });
  if (after == jumps.begin()) return nullptr;
  const patch::AttachJump& jump = *std::prev(after);
  // At its first byte the whole jump is still to come.
  return address > jump.address && address < jump.address + jump.bytes ? &jump : nullptr;
}

Result<StopOutcome> write_jumps(pid_t pid, const ProcessMemory& memory, const Jumps& jumps,
                                uint64_t state_at, Deadline deadline) {
  StopOutcome outcome;
  const auto began = Clock::now();
  {
    StoppedProcess process(pid);
    COLLECT_TRY(process.stop(deadline));
    const auto moved = process.move_out_of(jumps, deadline);
    if (!moved.ok()) return moved.error();
    COLLECT_TRY(for_each_run(memory, jumps, Compare{}));
    // No one writes to it now: an agent that has waited too long has given up before.
    const auto state = memory.get<uint32_t>(state_at);
    if (!state.ok()) return state.error();
    if (*state != patch::kAttachPrepared) {
      return Error{Code::kUnavailable, "the agent did not wait for its jumps any longer"};
    }
    const uint32_t begun = patch::kAttachCommitting;
    COLLECT_TRY(memory.write(state_at, &begun, sizeof begun));
    COLLECT_TRY(for_each_run(memory, jumps, Write{memory}));
    const uint32_t done = patch::kAttachCommitted;
    COLLECT_TRY(memory.write(state_at, &done, sizeof done));
    outcome.moved = *moved;
    outcome.threads = process.size();
  }
  outcome.stopped = Clock::now() - began;
  return outcome;
}

}  // namespace collect::inject
