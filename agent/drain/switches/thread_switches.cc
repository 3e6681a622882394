#include "agent/drain/switches/thread_switches.h"

#include <string.h>

namespace collect::agent {
namespace {

constexpr collect_wire_Stall_Kind kWireKinds[] = {collect_wire_Stall_Kind_BLOCKED,
                                                  collect_wire_Stall_Kind_PREEMPTED,
                                                  collect_wire_Stall_Kind_SAMPLE};

uint32_t place_of(uint32_t thread_id) {
  return thread_id * 2654435761U % kMaxSwitchingThreads;
}

}  // namespace

const char* ThreadSwitches::watch(int32_t process, const SwitchesWanted& wanted) {
  memset(threads_, 0, sizeof threads_);
  thread_count_ = joined_count_ = 0;
  return rings_.open(process, wanted);
}

uint64_t ThreadSwitches::known_until_ns() const {
  if (!rings_.is_open()) return UINT64_MAX;
  return joined_count_ == 0 ? known_until_ns_ : 0;
}

void ThreadSwitches::look(uint64_t now_ns, bool is_running, uint64_t end_ns) {
  if (!rings_.is_open() || now_ns < kSwitchSettleNs) return;
  const uint64_t until_ns = now_ns - kSwitchSettleNs;
  streams_.refresh();
  rings_.look();
  if (is_running) is_recorded_ = true;
  if (is_recorded_ && !is_running && until_ns >= end_ns) {
    read(end_ns);
    for (Thread& thread : threads_) {
      if (thread.out_ns != 0) report(thread, end_ns);
    }
    is_recorded_ = false;
  }
  read(until_ns);
  give_joined();
  known_until_ns_ = until_ns;
}

void ThreadSwitches::read(uint64_t until_ns) {
  SwitchRecord record;
  while (rings_.next(until_ns, record)) take(record);
}

void ThreadSwitches::take(const SwitchRecord& record) {
  const bool comes = record.what == SwitchRecord::What::kIn;
  Thread* const thread = find(record.thread_id, !comes);
  if (thread == nullptr) {
    if (!comes) ++lost_;
    return;
  }
  if (record.what == SwitchRecord::What::kSample) {
    if (is_recorded_) report_sample(*thread, record);
    return;
  }
  if (comes) {
    if (thread->out_ns != 0 && is_recorded_) report(*thread, record.ns);
    thread->out_ns = 0;
    return;
  }
  thread->out_ns = record.ns;
  thread->is_preempted = record.what == SwitchRecord::What::kPreempted;
}

ThreadSwitches::Thread* ThreadSwitches::find(uint32_t thread_id, bool add) {
  uint32_t at = place_of(thread_id);
  for (; threads_[at].thread_id != 0; at = (at + 1) % kMaxSwitchingThreads) {
    if (threads_[at].thread_id == thread_id) return &threads_[at];
  }
  if (!add) return nullptr;
  constexpr uint32_t kMost = kMaxSwitchingThreads / 4 * 3;
  if (thread_count_ == kMost) {
    forget_threads();
    if (thread_count_ == kMost) return nullptr;
    return find(thread_id, add);
  }
  ++thread_count_;
  threads_[at] = Thread{};
  threads_[at].thread_id = thread_id;
  return &threads_[at];
}

// Of threads that are not recorded, or not any more, nothing is to be known. In place: what follows
// a free place is put where it is found again.
void ThreadSwitches::forget_threads() {
  for (Thread& thread : threads_) {
    if (thread.thread_id == 0) continue;
    const Thread kept = thread;
    thread.thread_id = 0;
    --thread_count_;
    const StreamSlot* const slot = streams_.find(kept.stream_id);
    const bool is_recorded = slot != nullptr && !stream_ended(*slot->stream);
    if (!has_joined(kept) && !is_recorded) continue;
    *find(kept.thread_id, true) = kept;
  }
}

StreamSlot* ThreadSwitches::stream_of(Thread& thread) {
  StreamSlot* slot = thread.stream_id != 0 ? streams_.find(thread.stream_id) : nullptr;
  if (slot != nullptr && !stream_ended(*slot->stream)) return slot;
  if (thread.searched == streams_.found() || has_joined(thread)) return slot;
  thread.searched = streams_.found();
  StreamSlot* const newest = streams_.find_thread(thread.thread_id);
  if (newest != nullptr) thread.stream_id = newest->stream_id;
  return newest;
}

void ThreadSwitches::report(Thread& thread, uint64_t in_ns) {
  const StreamSlot* const slot = stream_of(thread);
  if (slot == nullptr) return;
  uint64_t first_ns = thread.out_ns;
  uint64_t last_ns = in_ns;
  if (first_ns < slot->start_ns) first_ns = slot->start_ns;
  if (stream_ended(*slot->stream)) {
    const uint64_t end_ns = stream_end_ns(*slot->stream);
    if (last_ns > end_ns) last_ns = end_ns;
  }
  if (last_ns > first_ns) {
    add(thread, slot->stream_id, thread.is_preempted ? kPreempted : kBlocked,
        {first_ns, last_ns, last_ns - first_ns, 1});
  } else if (has_joined(thread)) {
    ++lost_;  // perhaps of a new thread with the number of one whose times still wait
  }
}

void ThreadSwitches::report_sample(Thread& thread, const SwitchRecord& record) {
  const StreamSlot* const slot = stream_of(thread);
  if (slot == nullptr || record.ns < slot->start_ns) return;
  if (stream_ended(*slot->stream) && record.ns > stream_end_ns(*slot->stream)) return;
  ThreadStall sample{record.ns, record.ns, 0, 1};
  sample.place = code_at(record.address);
  add(thread, slot->stream_id, kSample, sample);
}

// As a function's id.
uint64_t ThreadSwitches::code_at(uint64_t address) {
  const auto has = [address](const ModuleRecord& module) {
    return address - module.base_address < module.size &&
           module.unloaded_ns.load(std::memory_order_relaxed) == 0;
  };
  const uint32_t count = module_count();
  if (sampled_module_ >= count || !has(module_at(sampled_module_))) {
    for (sampled_module_ = 0; sampled_module_ < count; ++sampled_module_) {
      if (has(module_at(sampled_module_))) break;
    }
  }
  if (sampled_module_ == count) return uint64_t{kUnknownModule} << 32 | (address & 0xFFFFFFFF);
  const ModuleRecord& module = module_at(sampled_module_);
  return uint64_t{module.module_id} << 32 | (address - module.base_address);
}

void ThreadSwitches::add(Thread& thread, uint32_t stream_id, Kind kind, const ThreadStall& time) {
  Times& joined = thread.joined[kind];
  if (joined.count == 0 && stalls_.add_of_thread(stream_id, kWireKinds[kind], time)) return;
  if (joined.count == 0) {
    joined = {time.first_ns, time.last_ns, 0, 0};
    ++joined_count_;
  }
  joined.last_ns = time.last_ns;
  joined.off_ns += time.stalled_ns;
  ++joined.count;
}

void ThreadSwitches::give_joined() {
  if (joined_count_ == 0) return;
  for (Thread& thread : threads_) {
    for (uint32_t kind = 0; kind < kKinds; ++kind) {
      Times& joined = thread.joined[kind];
      if (thread.thread_id == 0 || joined.count == 0) continue;
      if (!stalls_.add_of_thread(thread.stream_id, kWireKinds[kind],
                                 {joined.first_ns, joined.last_ns, joined.off_ns, joined.count}))
        return;
      joined.count = 0;
      --joined_count_;
    }
  }
}

}  // namespace collect::agent
