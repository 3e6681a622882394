#include "agent/drain/detail_window.h"

#include <cstring>

#include "agent/drain/link/frames.h"

namespace collect::agent {

void DetailWindow::recording_begins() {
  if (detail_mode() == 0) return;
  metadata_sender_.add_detail_state(detail_mode(), {recording_start_ns(), 0, 0}, "start");
}

void DetailWindow::recording_ends(uint64_t end_ns) {
  until_ns_ = 0;
  if (detail_mode() != 0) {
    metadata_sender_.add_detail_state(0, {end_ns, 0, 0}, "recording ended");
  }
  (void)set_detail(settings_.detail, 0, nullptr);
  filtered_ = false;
}

DetailChange DetailWindow::change(const collect_wire_SetDetail& wanted, bool is_recorded) {
  if (until_ns_ == 0) {
    mode_before_ = detail_mode();
    filtered_before_ = filtered_;
    if (filtered_) filter_before_ = filter_;
  }
  filter_.thread_count = wanted.thread_ids_count;
  filter_.function_count = wanted.function_ids_count;
  std::memcpy(filter_.thread_ids, wanted.thread_ids, sizeof(uint32_t) * wanted.thread_ids_count);
  std::memcpy(filter_.function_ids, wanted.function_ids,
              sizeof(uint64_t) * wanted.function_ids_count);
  filtered_ = filter_.thread_count != 0 || filter_.function_count != 0;
  const uint32_t mode = enum_number(wanted.mode);
  const DetailChange change = apply(mode, wanted.pre_roll_ns, "command", is_recorded);
  const bool limited = mode == collect_wire_DetailMode_DETAIL_ON && wanted.duration_ns != 0;
  const bool for_ever = wanted.duration_ns > UINT64_MAX - change.at_ns;
  until_ns_ = limited && !for_ever ? change.at_ns + wanted.duration_ns : 0;
  return change;
}

void DetailWindow::end_when_due(uint64_t now_ns, bool is_recorded) {
  if (until_ns_ == 0 || now_ns < until_ns_) return;
  until_ns_ = 0;
  filtered_ = filtered_before_;
  if (filtered_) filter_ = filter_before_;
  (void)apply(mode_before_, 0, "duration", is_recorded);
}

// With the filter as it is now.
DetailChange DetailWindow::apply(uint32_t mode, uint64_t pre_roll_ns, const char* reason,
                                 bool is_recorded) {
  pauses_.note_blocking();
  const DetailChange change = set_detail(mode, pre_roll_ns, filtered_ ? &filter_ : nullptr);
  if (is_recorded) metadata_sender_.add_detail_state(mode, change, reason);
  return change;
}

}  // namespace collect::agent
