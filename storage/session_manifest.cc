// The manifest in memory made true, and written.
#include <algorithm>

#include "storage/manifest_file.h"
#include "storage/session.h"
#include "storage/session_budget.h"

namespace collect::storage {

void Session::refresh_manifest() {
  manifest_.totals = totals();
  manifest_.time_start_ns = manifest_.totals.first_ns;
  manifest_.time_end_ns = manifest_.totals.last_ns;
  manifest_.gaps.clear();
  manifest_.stalls.clear();
  process_stalls_.append_to(manifest_.stalls, std::nullopt);
  for (size_t slot = 0; slot < threads_.size(); ++slot) {
    refresh_thread(slot);
    const ThreadWriter* writer = threads_[slot].writer.get();
    if (writer == nullptr) continue;
    for (const Lane lane : {Lane::kIndex, Lane::kDetail}) {
      for (Gap gap : writer->gaps(lane).gaps()) {
        gap.thread = manifest_.threads[slot].id;
        manifest_.gaps.push_back(gap);
      }
    }
    writer->stalls().append_to(manifest_.stalls, manifest_.threads[slot].id);
  }
  refresh_foreign();
  refresh_containers();
}

void Session::refresh_thread(size_t slot) {
  const ThreadWriter* writer = threads_[slot].writer.get();
  if (writer == nullptr) return;
  ManifestThread& thread = manifest_.threads[slot];
  thread.has_detail = writer->has_detail();
  thread.events = writer->summary(Lane::kIndex).records;
  thread.detail_records = writer->summary(Lane::kDetail).records;
  thread.lost_events = writer->lost(Lane::kIndex);
  thread.lost_detail_records = writer->lost(Lane::kDetail);
  // What is missing after a crash stays known until it was sent again, or counted at the seal.
  thread.index_next = std::max(threads_[slot].known_next[0], writer->position(Lane::kIndex));
  thread.detail_next = std::max(threads_[slot].known_next[1], writer->position(Lane::kDetail));
  thread.stalls = writer->stalls().totals();
  thread.first_ns = writer->summary(Lane::kIndex).first_ns;
  thread.last_ns = writer->summary(Lane::kIndex).last_ns;
}

void Session::refresh_containers() {
  manifest_.containers = roller_.containers();
  manifest_.containers_removed = roller_.removed();
}

Status Session::write_manifest_now(bool durable) {
  refresh_manifest();
  const uint64_t before = clock().monotonic_ns();
  uint64_t bytes = 0;
  const Status written = with_descriptors(
      nullptr, [&] { return write_manifest(fs_, directory(), manifest_, durable, &bytes); });
  COLLECT_TRY(written);
  manifest_written_ns_ = clock().monotonic_ns();
  manifest_pace_.written(bytes, manifest_written_ns_);
  if (options_.budget != nullptr) options_.budget->manifest_written(bytes + kManifestFixedBytes);
  manifest_cost_ns_ = manifest_written_ns_ - before;
  space_.look_again();
  manifest_needed_ = manifest_urgent_ = manifest_dirty_ = false;
  return {};
}

}  // namespace collect::storage
