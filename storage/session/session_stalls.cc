#include "storage/session/session_stalls.h"

#include <algorithm>
#include <utility>

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

Status SessionStalls::add(uint32_t slot, std::span<const Stall> stalls) {
  std::vector<Stall> added;
  const Status status = add_to_journal(slot, stalls, added);
  // After another error the container is left as it is.
  if (status.ok() || status.code() == Code::kExhausted) publish(std::move(added));
  return status;
}

Status SessionStalls::add_to_journal(uint32_t slot, std::span<const Stall> stalls,
                                     std::vector<Stall>& added) {
  ThreadWriter& writer = *threads_.writer(slot);
  for (const Stall& stall : stalls) {
    if (writer.stalls().is_repeat(stall)) continue;
    COLLECT_TRY(threads_.with_descriptors(
        &writer, [&] { return writer.add_stalls({&stall, 1}, threads_.stalls_per_thread()); }));
    added.push_back(stall);
    added.back().thread = live_.manifest.threads[slot].id;
  }
  if (added.empty()) return {};
  threads_.written(slot);
  return threads_.limit_open_files();
}

void SessionStalls::adopt() {
  const std::vector<ManifestThread>& known = live_.manifest.threads;
  for (const Stall& stall : live_.manifest.stalls) {
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
