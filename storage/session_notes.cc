// What a session is told beside its records: windows, clocks, markers, names. All of it stands in
// the manifest, and in the open container.
#include <algorithm>
#include <utility>

#include "storage/session.h"

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

Status Session::detail_state(const DetailStateChange& change) {
  auto& windows = manifest_.detail_windows;
  const bool open = !windows.empty() && windows.back().end_ns == 0;
  if (!windows.empty()) {
    const DetailWindow& last = windows.back();
    // Told again after a reconnect, or older than what is known.
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
  manifest_dirty_ = true;
  manifest_urgent_ = true;
  roller_.change({.detail_windows = {{change.mode, change.at_ns, 0, change.pre_roll_from_ns,
                                      change.pre_roll_records, change.reason}}});
  if (change.mode == "off") return {};
  if (windows.size() == kMaxDetailWindows) {
    ++manifest_.detail_windows_left_out;
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

Status Session::function_filter(FunctionFilter filter) {
  auto& known = manifest_.function_filters;
  if (!known.empty() && filter.at_ns <= known.back().at_ns) return {};
  for (auto* list : {&filter.only, &filter.except}) {
    if (list->size() > kMaxFilterPatterns) list->resize(kMaxFilterPatterns);
    for (std::string& pattern : *list) bound_text(pattern);
  }
  manifest_dirty_ = true;
  manifest_urgent_ = true;
  roller_.change({.function_filters = {filter}});
  if (known.size() == kMaxFunctionFilters) {
    ++manifest_.function_filters_left_out;
  } else {
    known.push_back(std::move(filter));
  }
  return {};
}

Status Session::clock_sync(const ClockSync& sync) {
  if (manifest_.clock_syncs.size() == kMaxClockSyncs) thin_out(manifest_.clock_syncs);
  manifest_.clock_syncs.push_back(sync);
  bound_text(manifest_.clock_syncs.back().boot_id);
  roller_.change({.clock_syncs = {sync}});
  manifest_dirty_ = true;
  return {};
}

Status Session::note(const std::string& what) {
  manifest_dirty_ = true;
  roller_.log(what);
  if (manifest_.notes.size() == kMaxNotes) {
    ++manifest_.notes_left_out;
    return {};
  }
  Note note{clock().unix_ns(), what};
  bound_text(note.what);
  roller_.change({.notes = {note}});
  manifest_.notes.push_back(std::move(note));
  return {};
}

void Session::input_missing(MissingInput missing) {
  add_missing_input(manifest_, std::move(missing));
  manifest_dirty_ = true;
}

void Session::set_process_end(const ProcessEnd& end) {
  if (manifest_.process_end == end) return;
  manifest_.process_end = end;
  manifest_dirty_ = true;
}

void Session::set_lost_without_stream(uint64_t count) {
  if (count <= manifest_.lost_without_stream) return;
  manifest_.lost_without_stream = count;
  roller_.change({.lost_without_stream = count});
  manifest_dirty_ = true;
}

Status Session::marker(const Marker& marker) {
  for (const Marker& known : manifest_.markers) {
    if (known.at_ns == marker.at_ns && known.text == marker.text) return {};
  }
  manifest_dirty_ = true;
  if (manifest_.markers.size() == kMaxMarkers) {
    ++manifest_.markers_left_out;
  } else {
    manifest_.markers.push_back(marker);
    bound_text(manifest_.markers.back().text);
  }
  roller_.marker(marker);
  roller_.change({.markers = {marker}});
  return {};
}

Result<std::string> Session::roll_container() {
  refresh_manifest();
  auto rolled = roller_.roll(manifest_);
  manifest_urgent_ = true;
  note_capture_problem();
  return rolled;
}

void Session::adopt_symbols(std::vector<Symbol> symbols, std::vector<ModuleSymbols> modules,
                            SymbolsState state) {
  manifest_.symbols = std::move(symbols);
  manifest_.module_symbols = std::move(modules);
  manifest_.symbols_state = state;
  symbols_known_ = true;
}

}  // namespace collect::storage
