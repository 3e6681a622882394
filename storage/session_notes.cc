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

size_t Session::stalls_per_thread() const {
  return std::clamp(kMaxStallsListed / std::max<size_t>(threads_.size(), 1), kLeastStallsPerThread,
                    kMaxStallsPerThread);
}

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
    if (!added.empty()) manifest_urgent_ = true;  // no journal has it
  }
  if (!added.empty()) {
    manifest_dirty_ = true;
    roller_.change({.stalls = std::move(added)});
  }
  return status;
}

Status Session::add_thread_stalls(uint32_t stream_id, std::span<const Stall> stalls,
                                  std::vector<Stall>& added) {
  if (!failure_.ok()) return failure_;
  const auto known = by_stream_.find(stream_id);
  if (known == by_stream_.end()) {
    return Error{Code::kDamaged, name() + ": stall of stream " + std::to_string(stream_id) +
                                     ", which was not opened"};
  }
  Thread& thread = threads_[known->second];
  if (thread.writer == nullptr) {
    return Error{Code::kIo, name() + ": the files of thread " + std::to_string(known->second) +
                                " cannot be read"};
  }
  ThreadWriter& writer = *thread.writer;
  for (const Stall& stall : stalls) {
    if (writer.stalls().is_repeat(stall)) continue;
    const size_t open_before = writer.open_files();
    const Status put = with_descriptors(
        &writer, [&] { return writer.add_stalls({&stall, 1}, stalls_per_thread()); });
    count_open_files(open_before, writer.open_files());
    if (!put.ok()) return fail(put);
    added.push_back(stall);
    added.back().thread = manifest_.threads[known->second].id;
  }
  if (added.empty()) return {};
  thread.last_use = ++use_counter_;
  mark_uncommitted(known->second);
  return fail(limit_open_files());
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
        threads_[static_cast<size_t>(thread - manifest_.threads.begin())].writer.get();
    if (writer != nullptr) writer->adopt_stall(stall, stalls_per_thread());
  }
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
