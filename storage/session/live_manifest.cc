#include "storage/session/live_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "storage/model/seal_reason.h"
#include "storage/session/session_budget.h"

namespace collect::storage {
namespace {

// Every second element goes, the first and the last stay.
template <class T>
void thin_out(std::vector<T>& list) {
  size_t kept = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (i % 2 == 0 || i + 1 == list.size()) list[kept++] = list[i];
  }
  list.resize(kept);
}

}  // namespace

// ---- when it must be on the disk

bool LiveManifest::must_write() const {
  const uint64_t interval = std::max(kManifestIntervalNs, 20 * cost_ns_);
  const bool is_due = changed_ && clock_.monotonic_ns() - written_ns_ >= interval;
  return before_page_ || before_ack_ || is_due;
}

uint64_t LiveManifest::wait_ns(const SessionBudget* budget) const {
  if (!before_page_ && !before_ack_) return 0;
  const uint64_t others = budget == nullptr ? 0 : budget->manifest_wait_ns();
  return std::max(others, pace_.wait_ns(clock_.monotonic_ns()));
}

void LiveManifest::written(uint64_t bytes, uint64_t begun_ns) {
  written_ns_ = clock_.monotonic_ns();
  pace_.written(bytes, written_ns_);
  cost_ns_ = written_ns_ - begun_ns;
  before_page_ = before_ack_ = changed_ = false;
}

void LiveManifest::adopt(Manifest found) {
  manifest = std::move(found);
  for (size_t i = 0; i < manifest.modules.size(); ++i) {
    by_module_[manifest.modules[i].module_id] = i;
  }
}

// ---- what it says

Status LiveManifest::add_modules(std::span<const ModuleInfo> modules, const std::string& session) {
  for (const ModuleInfo& module : modules) {
    const auto known = by_module_.find(module.module_id);
    if (known != by_module_.end()) {
      ModuleInfo& ours = manifest.modules[known->second];
      if (ours.unloaded_ns == module.unloaded_ns) continue;
      ours.unloaded_ns = module.unloaded_ns;
      change();
      roller_.change({.modules = {ours}});
      continue;
    }
    if (manifest.modules.size() == kMaxModules) {
      return Error{Code::kLimit, fmt::format("{}: more than {} modules", session, kMaxModules)};
    }
    by_module_[module.module_id] = manifest.modules.size();
    ModuleInfo ours = module;
    bound_text(ours.path);
    if (ours.build_id.size() > kMaxBuildIdBytes) ours.build_id.resize(kMaxBuildIdBytes);
    roller_.change({.modules = {ours}});
    manifest.modules.push_back(std::move(ours));
    change_before_page();
  }
  return {};
}

Status LiveManifest::detail_state(const DetailStateChange& change) {
  auto& windows = manifest.detail_windows;
  const bool open = !windows.empty() && windows.back().end_ns == 0;
  if (!windows.empty()) {
    const DetailWindow& last = windows.back();
    // Sent again after a reconnect, or older than what is known.
    if (open && last.mode == change.mode && last.start_ns == change.at_ns) return {};
    if (change.at_ns < std::max(last.start_ns, last.end_ns)) return {};
    if (!open && change.mode == "off") return {};
  } else if (change.mode == "off") {
    return {};
  }
  if (open) {
    windows.back().end_ns = std::max<uint64_t>(change.at_ns, 1);
    if (change.mode == "off") windows.back().reason = change.reason;
  }
  change_before_ack();
  roller_.change({.detail_windows = {{change.mode, change.at_ns, 0, change.pre_roll_from_ns,
                                      change.pre_roll_records, change.reason}}});
  if (change.mode == "off") return {};
  if (windows.size() == kMaxDetailWindows) {
    ++manifest.detail_windows_left_out;
    return {};
  }
  DetailWindow window{
      change.mode,  change.at_ns, 0, change.pre_roll_from_ns, change.pre_roll_records,
      change.reason};
  bound_text(window.mode);
  bound_text(window.reason);
  windows.push_back(std::move(window));
  return {};
}

Status LiveManifest::function_filter(FunctionFilter filter) {
  auto& known = manifest.function_filters;
  if (!known.empty() && filter.at_ns <= known.back().at_ns) {
    auto& off = known.back().switched_off;
    if (filter.at_ns < known.back().at_ns || filter.switched_off.size() <= off.size()) return {};
    change_before_ack();
    roller_.change({.function_filters = {filter}});
    off = std::move(filter.switched_off);
    return {};
  }
  for (auto* list : {&filter.only, &filter.except}) {
    if (list->size() > kMaxFilterPatterns) list->resize(kMaxFilterPatterns);
    for (std::string& pattern : *list) bound_text(pattern);
  }
  change_before_ack();
  roller_.change({.function_filters = {filter}});
  if (known.size() == kMaxFunctionFilters) {
    ++manifest.function_filters_left_out;
  } else {
    known.push_back(std::move(filter));
  }
  return {};
}

Status LiveManifest::clock_sync(const ClockSync& sync) {
  if (manifest.clock_syncs.size() == kMaxClockSyncs) thin_out(manifest.clock_syncs);
  manifest.clock_syncs.push_back(sync);
  bound_text(manifest.clock_syncs.back().boot_id);
  roller_.change({.clock_syncs = {sync}});
  change();
  return {};
}

Status LiveManifest::note(const std::string& what) {
  change();
  roller_.log(what);
  if (manifest.notes.size() == kMaxNotes) {
    ++manifest.notes_left_out;
    return {};
  }
  Note note{clock_.unix_ns(), what};
  bound_text(note.what);
  roller_.change({.notes = {note}});
  manifest.notes.push_back(std::move(note));
  return {};
}

void LiveManifest::input_missing(MissingInput missing) {
  add_missing_input(manifest, std::move(missing));
  change();
}

void LiveManifest::set_process_end(const ProcessEnd& end) {
  if (manifest.process_end == end) return;
  manifest.process_end = end;
  change();
}

void LiveManifest::set_lost_without_stream(uint64_t count) {
  if (count <= manifest.lost_without_stream) return;
  manifest.lost_without_stream = count;
  roller_.change({.lost_without_stream = count});
  change();
}

void LiveManifest::set_switches_lost(uint64_t count) {
  if (count <= manifest.switches_lost) return;
  manifest.switches_lost = count;
  roller_.change({.switches_lost = count});
  change();
}

Status LiveManifest::marker(const Marker& marker) {
  for (const Marker& known : manifest.markers) {
    if (known.at_ns == marker.at_ns && known.text == marker.text) return {};
  }
  change();
  if (manifest.markers.size() == kMaxMarkers) {
    ++manifest.markers_left_out;
  } else {
    manifest.markers.push_back(marker);
    bound_text(manifest.markers.back().text);
  }
  roller_.marker(marker);
  roller_.change({.markers = {marker}});
  return {};
}

// ---- while the session is sealed

void LiveManifest::end_detail_window(uint64_t last_ns) {
  if (manifest.detail_windows.empty()) return;
  DetailWindow& last = manifest.detail_windows.back();
  if (last.end_ns == 0) last.end_ns = std::max({last_ns, last.start_ns, uint64_t{1}});
}

void LiveManifest::fail(const Status& status) {
  const std::string why = seal_reason(status.error());
  manifest.sealing_state = SessionState::kFailed;
  if (manifest.state != SessionState::kRecording) manifest.state = SessionState::kFailed;
  if (manifest.reason.find(why) != std::string::npos) return;
  manifest.reason += (manifest.reason.empty() ? "" : "; ") + why;
  bound_text(manifest.reason);
}

}  // namespace collect::storage
