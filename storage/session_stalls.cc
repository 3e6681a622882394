// Stalls of a session's threads, and of its whole process.
#include <algorithm>
#include <utility>

#include "storage/session.h"

namespace collect::storage {

Status Session::add_stalls(uint32_t stream_id, std::span<const Stall> stalls) {
  std::vector<Stall> added;
  Status status;
  if (stream_id != 0) {
    status = add_thread_stalls(stream_id, stalls, added);
  } else {
    for (const Stall& stall : stalls) {
      if (process_stalls_.is_repeat(stall)) continue;
      process_stalls_.add(stall, kMaxStallsPerThread);
      added.push_back(stall);
    }
    if (!added.empty()) live_.change_before_ack();  // no journal has it
  }
  if (!added.empty()) {
    live_.change();
    roller_.change({.stalls = std::move(added)});
  }
  return status;
}

Status Session::add_thread_stalls(uint32_t stream_id, std::span<const Stall> stalls,
                                  std::vector<Stall>& added) {
  if (!failure_.ok()) return failure_;
  const auto slot = slot_for(stream_id, "stall");
  if (!slot.ok()) return slot.error();
  ThreadWriter& writer = *threads_.writer(*slot);
  for (const Stall& stall : stalls) {
    if (writer.stalls().is_repeat(stall)) continue;
    const Status put = threads_.with_descriptors(
        &writer, [&] { return writer.add_stalls({&stall, 1}, threads_.stalls_per_thread()); });
    if (!put.ok()) return fail(put);
    added.push_back(stall);
    added.back().thread = manifest_.threads[*slot].id;
  }
  if (added.empty()) return {};
  threads_.written(*slot);
  return fail(threads_.limit_open_files());
}

// Of a session that is opened again: the journals have been read.
void Session::adopt_stalls() {
  for (const Stall& stall : manifest_.stalls) {
    if (!stall.thread) {
      if (!process_stalls_.is_repeat(stall)) process_stalls_.add(stall, kMaxStallsPerThread);
      continue;
    }
    const auto thread =
        std::lower_bound(manifest_.threads.begin(), manifest_.threads.end(), *stall.thread,
                         [](const ManifestThread& one, uint32_t id) { return one.id < id; });
    if (thread == manifest_.threads.end() || thread->id != *stall.thread) continue;
    ThreadWriter* const writer =
        threads_.writer(static_cast<size_t>(thread - manifest_.threads.begin()));
    if (writer != nullptr) writer->adopt_stall(stall, threads_.stalls_per_thread());
  }
}

}  // namespace collect::storage
