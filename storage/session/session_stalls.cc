#include "storage/session/session_stalls.h"

#include <algorithm>
#include <utility>

#include "storage/model/switch_times.h"

namespace collect::storage {

void SessionStalls::publish(std::vector<Stall> added) {
  if (added.empty()) return;
  live_.change();
  roller_.change({.stalls = std::move(added)});
}

void SessionStalls::add(std::span<const Stall> stalls) {
  std::vector<Stall> added;
  for (const Stall& stall : stalls) {
    if (of_process_.is_repeat(stall)) continue;
    of_process_.add(stall, kMaxStallsPerThread);
    added.push_back(stall);
  }
  if (!added.empty()) live_.change_before_ack();  // no journal has it
  publish(std::move(added));
}

Status SessionStalls::add(std::span<const StreamStall> arrived, const std::string& name,
                          const Status& failure, std::vector<Stall>& switches) {
  std::vector<Stall> of_process;
  std::vector<ThreadStall> of_threads;
  for (const auto& [stream_id, stall] : arrived) {
    if (stream_id == 0) {
      of_process.push_back(stall);
      continue;
    }
    const auto slot = threads_.slot_for(stream_id, "stall", name);
    if (!slot.ok()) return slot.error();
    of_threads.push_back({*slot, stall});
  }
  add(of_process);
  if (of_threads.empty()) return {};
  if (!failure.ok()) return failure;
  std::vector<Stall> added;
  const Status status = add_to_journals(of_threads, added);
  // After another error the container is left as it is.
  if (status.ok() || status.code() == Code::kExhausted) publish(std::move(added));
  if (!status.ok()) return status;
  for (const auto& [slot, stall] : of_threads) {
    const StallList& known = threads_.writer(slot)->stalls();
    if (!is_in_switches_file(stall.kind) || known.is_repeat(stall)) continue;
    switches.push_back(known.rest_of(stall));
    switches.back().thread = live_.manifest.threads[slot].id;
  }
  return {};
}

std::vector<uint8_t> SessionStalls::frames_of(std::span<const Stall> switches) {
  return listed_ < kMaxSwitchesListed ? encode_switches(switches) : std::vector<uint8_t>();
}

Status SessionStalls::add_to_journals(std::span<const ThreadStall> stalls,
                                      std::vector<Stall>& added) {
  for (const auto& [slot, stall] : stalls) {
    ThreadWriter& writer = *threads_.writer(slot);
    if (is_in_switches_file(stall.kind) || writer.stalls().is_repeat(stall)) continue;
    COLLECT_TRY(threads_.with_descriptors(
        &writer, [&] { return writer.add_stalls({&stall, 1}, threads_.stalls_per_thread()); }));
    added.push_back(stall);
    added.back().thread = live_.manifest.threads[slot].id;
    threads_.written(slot);
  }
  return added.empty() ? Status() : threads_.limit_open_files();
}

void SessionStalls::adopt(std::span<const Stall> stalls) {
  const std::vector<ManifestThread>& known = live_.manifest.threads;
  for (const Stall& stall : stalls) {
    if (is_in_switches_file(stall.kind) && ++listed_ == kMaxSwitchesListed) {
      (void)live_.note(
          "times off the processor and waits for locks are counted from here on, and not listed: "
          "there are too many");
    }
    if (!stall.thread) {
      if (!of_process_.is_repeat(stall)) of_process_.add(stall, kMaxStallsPerThread);
      continue;
    }
    const auto thread =
        std::lower_bound(known.begin(), known.end(), *stall.thread,
                         [](const ManifestThread& one, uint32_t id) { return one.id < id; });
    if (thread == known.end() || thread->id != *stall.thread) continue;
    ThreadWriter* const writer = threads_.writer(static_cast<size_t>(thread - known.begin()));
    if (writer != nullptr) writer->adopt_stall(stall, threads_.stalls_per_thread());
  }
}

}  // namespace collect::storage
