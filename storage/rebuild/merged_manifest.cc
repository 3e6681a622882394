#include "storage/rebuild/merged_manifest.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "storage/model/collector_identity.h"

namespace collect::storage {
namespace {

// What has no number yet: all that was lost, but for the jumps in the numbers.
uint64_t unnumbered(uint64_t lost, uint64_t next, uint64_t stored) {
  return lost - std::min(lost, next - std::min(next, stored));
}

uint64_t earlier(uint64_t a, uint64_t b) {
  return a == 0 || b == 0 ? std::max(a, b) : std::min(a, b);
}

class ManifestMerge {
 public:
  explicit ManifestMerge(const std::vector<SessionPart>& parts) {
    out_.identity = parts.front().manifest.identity;
    out_.identity.collector = {};
    out_.created_unix_ns = parts.front().manifest.created_unix_ns;
    out_.clock_syncs = parts.front().manifest.clock_syncs;
    for (const SessionPart& part : parts) add(part);
  }

  Manifest take() {
    for (auto& [stream, thread] : threads_) {
      thread.id = static_cast<uint32_t>(out_.threads.size());
      for (Stall stall : thread_stalls_[stream]) {
        stall.thread = thread.id;
        out_.stalls.push_back(stall);
      }
      out_.threads.push_back(std::move(thread));
    }
    const auto order = [](const auto& stall) { return std::tuple(stall.thread, stall.first_ns); };
    std::ranges::stable_sort(out_.stalls, {}, order);
    for (auto& [id, module] : modules_) out_.modules.push_back(std::move(module));
    for (auto& [id, symbol] : symbols_) out_.symbols.push_back(std::move(symbol));
    for (auto& [id, symbols] : module_symbols_) out_.module_symbols.push_back(std::move(symbols));
    for (auto& [key, window] : windows_) out_.detail_windows.push_back(std::move(window));
    for (auto& [at_ns, filter] : filters_) out_.function_filters.push_back(std::move(filter));
    for (const auto& [at_ns, text] : markers_) out_.markers.push_back({at_ns, text});
    std::ranges::stable_sort(out_.notes, {}, &Note::at_unix_ns);
    return std::move(out_);
  }

 private:
  void add(const SessionPart& part) {
    const Manifest& from = part.manifest;
    std::map<uint32_t, uint32_t> stream_of;  // by N of thread_N in this part
    for (const ManifestThread& thread : from.threads) {
      stream_of[thread.id] = thread.stream_id;
      add_thread(thread);
    }
    for (const Stall& stall : from.stalls) add_stall(stall, stream_of);
    for (const ModuleInfo& module : from.modules) add_module(module);
    for (const Symbol& symbol : from.symbols) symbols_.try_emplace(symbol.function_id, symbol);
    for (const ModuleSymbols& symbols : from.module_symbols) {
      ModuleSymbols& known = module_symbols_.try_emplace(symbols.module_id, symbols).first->second;
      if (symbols.named > known.named) known = symbols;
    }
    for (const DetailWindow& window : from.detail_windows) {
      DetailWindow& known =
          windows_.try_emplace(std::pair(window.start_ns, window.mode), window).first->second;
      known.end_ns = std::max(known.end_ns, window.end_ns);
    }
    for (const FunctionFilter& filter : from.function_filters) {
      FunctionFilter& known = filters_.try_emplace(filter.at_ns, filter).first->second;
      if (known.switched_off.size() < filter.switched_off.size()) known = filter;
    }
    for (const Marker& marker : from.markers) markers_.emplace(marker.at_ns, marker.text);
    out_.notes.insert(out_.notes.end(), from.notes.begin(), from.notes.end());
    out_.notes.push_back({from.finished_unix_ns, note_of(part)});
    out_.input_missing.insert(out_.input_missing.end(), from.input_missing.begin(),
                              from.input_missing.end());
    out_.lost_without_stream = std::max(out_.lost_without_stream, from.lost_without_stream);
    out_.switches_lost = std::max(out_.switches_lost, from.switches_lost);
    out_.finished_unix_ns = std::max(out_.finished_unix_ns, from.finished_unix_ns);
    out_.symbols_state = std::max(out_.symbols_state, from.symbols_state);
    if (from.process_end.how != ProcessEnd::How::kNotKnown) out_.process_end = from.process_end;
    // The part that has the end of the recording says how the session ended.
    if (out_.state != SessionState::kComplete) {
      out_.state = from.state;
      out_.reason = from.reason;
    }
  }

  void add_thread(const ManifestThread& from) {
    const auto [known, is_new] = threads_.try_emplace(from.stream_id);
    ManifestThread& thread = known->second;
    if (is_new) {
      thread.stream_id = from.stream_id;
      thread.thread_id = from.thread_id;
    }
    add_names(thread, from);
    thread.start_ns = earlier(thread.start_ns, from.start_ns);
    thread.end_ns = std::max(thread.end_ns, from.end_ns);
    thread.ended = thread.ended || from.ended;
    thread.has_detail = thread.has_detail || from.has_detail;
    thread.calls_left_out = std::max(thread.calls_left_out, from.calls_left_out);
    thread.index_next = std::max(thread.index_next, from.index_next);
    thread.detail_next = std::max(thread.detail_next, from.detail_next);
    thread.events = thread.index_next;
    thread.detail_records = thread.detail_next;
    thread.lost_events =
        std::max(thread.lost_events, unnumbered(from.lost_events, from.index_next, from.events));
    thread.lost_detail_records =
        std::max(thread.lost_detail_records,
                 unnumbered(from.lost_detail_records, from.detail_next, from.detail_records));
  }

  // The newest part has the last name; each may have names that no other has.
  static void add_names(ManifestThread& thread, const ManifestThread& from) {
    std::vector<ThreadName>& names = thread.names;
    const bool is_newer = from.ended || from.last_ns >= thread.last_ns;
    if (!from.name.empty() && (thread.name.empty() || is_newer)) thread.name = from.name;
    thread.last_ns = std::max(thread.last_ns, from.last_ns);
    names.insert(names.end(), from.names.begin(), from.names.end());
    std::ranges::stable_sort(names, {}, &ThreadName::from_ns);
    const auto same = [](const ThreadName& a, const ThreadName& b) { return a.name == b.name; };
    names.erase(std::unique(names.begin(), names.end(), same), names.end());
    if (names.size() <= kMaxThreadNames) return;
    names[kMaxThreadNames - 1] = names.back();
    names.resize(kMaxThreadNames);
  }

  // The agent sends a stall again until a collector has it.
  void add_stall(const Stall& stall, const std::map<uint32_t, uint32_t>& stream_of) {
    const auto stream = stall.thread ? stream_of.find(*stall.thread) : stream_of.end();
    if (stall.thread && stream == stream_of.end()) return;
    std::vector<Stall>& list = stall.thread ? thread_stalls_[stream->second] : out_.stalls;
    if (is_in_switches_file(stall.kind)) {
      list.push_back(stall);  // the session that is made knows repeats
      return;
    }
    const bool is_known = std::ranges::any_of(list, [&](const Stall& known) {
      return known.kind == stall.kind && known.first_ns <= stall.first_ns &&
             stall.last_ns <= known.last_ns;
    });
    if (!is_known) list.push_back(stall);
  }

  void add_module(const ModuleInfo& module) {
    ModuleInfo& known = modules_.try_emplace(module.module_id, module).first->second;
    known.unloaded_ns = std::max(known.unloaded_ns, module.unloaded_ns);
  }

  static std::string note_of(const SessionPart& part) {
    const std::string collector = collector_name(part.manifest.identity.collector);
    return fmt::format(
        "merged: {} events of {}", part.manifest.totals.events,
        collector.empty() ? "a collector that is not known" : "collector " + collector);
  }

  Manifest out_;
  std::map<uint32_t, ManifestThread> threads_;            // by stream
  std::map<uint32_t, std::vector<Stall>> thread_stalls_;  // by stream
  std::map<uint32_t, ModuleInfo> modules_;
  std::map<uint64_t, Symbol> symbols_;
  std::map<uint32_t, ModuleSymbols> module_symbols_;
  std::map<std::pair<uint64_t, std::string>, DetailWindow> windows_;
  std::map<uint64_t, FunctionFilter> filters_;
  std::set<std::pair<uint64_t, std::string>> markers_;
};

}  // namespace

Manifest merged_manifest(const std::vector<SessionPart>& parts) {
  return ManifestMerge(parts).take();
}

}  // namespace collect::storage
