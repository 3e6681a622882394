#include "storage/manifest/manifest.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <utility>

#include "formats/core/text/hex.h"
#include "storage/manifest/record_ranges.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string hex_number(uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(number));
  return text;
}

// A UUID where the build id has 16 bytes, as Mach-O images do.
std::string uuid_text(Bytes id) {
  const std::string hex = hex_bytes(id);
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

OrderedJson process_json(const SessionIdentity& identity) {
  OrderedJson json = {{"process_id", hex_bytes(identity.process_id)},
                      {"recording", identity.recording},
                      {"pid", identity.pid},
                      {"parent_pid", identity.parent_pid},
                      {"name", identity.process_name},
                      {"executable", identity.executable},
                      {"device_id", identity.device_id},
                      {"device_model", identity.device_model},
                      {"boot_id", identity.boot_id},
                      {"tag", identity.tag},
                      {"agent_version", identity.agent_version},
                      {"arch", static_cast<uint32_t>(identity.arch)},
                      {"os", static_cast<uint32_t>(identity.os)},
                      {"atf_version", static_cast<uint32_t>(identity.version)},
                      {"start_ns", identity.start_ns},
                      {"start_unix_ns", identity.start_unix_ns}};
  if (!identity.route.empty()) json["route"] = identity.route;
  if (identity.max_depth != 0) json["max_depth"] = identity.max_depth;
  if (identity.longer_than_ns != 0) json["longer_than_ns"] = identity.longer_than_ns;
  if (identity.max_rate != 0) json["max_rate"] = identity.max_rate;
  if (identity.switches) json["switches"] = true;
  if (!identity.no_switches.empty()) json["no_switches"] = identity.no_switches;
  if (identity.sample_hz != 0) json["sample_hz"] = identity.sample_hz;
  if (!identity.no_samples.empty()) json["no_samples"] = identity.no_samples;
  return json;
}

void put_switches(OrderedJson& json, const StallTotals& totals) {
  if (totals.switches != 0) {
    json["switches"] = totals.switches;
    json["blocked_ns"] = totals.blocked_ns;
    json["preempted_ns"] = totals.preempted_ns;
  }
  if (totals.lock_waits != 0) {
    json["lock_waits"] = totals.lock_waits;
    json["lock_wait_ns"] = totals.lock_wait_ns;
  }
  if (totals.samples != 0) json["samples"] = totals.samples;
}

OrderedJson thread_json(const ManifestThread& thread) {
  OrderedJson json = {{"id", thread.id},
                      {"has_detail", thread.has_detail},
                      {"thread_id", thread.thread_id},
                      {"name", thread.name},
                      {"stream_id", thread.stream_id},
                      {"ended", thread.ended},
                      {"events", thread.events},
                      {"detail_records", thread.detail_records},
                      {"lost_events", thread.lost_events},
                      {"lost_detail_records", thread.lost_detail_records},
                      {"index_next", thread.index_next},
                      {"detail_next", thread.detail_next},
                      {"start_ns", thread.start_ns},
                      {"end_ns", thread.end_ns},
                      {"time_start_ns", thread.first_ns},
                      {"time_end_ns", thread.last_ns},
                      {"stall_count", thread.stalls.count},
                      {"stalled_ns", thread.stalls.stalled_ns}};
  put_switches(json, thread.stalls);
  if (thread.calls_left_out != 0) json["calls_left_out"] = thread.calls_left_out;
  for (const ThreadName& one : thread.names) {
    json["names"].push_back({{"from_ns", one.from_ns}, {"name", one.name}});
  }
  return json;
}

// [[number of the first record, how many], …] in the agent's numbers, where these are no positions
// of the file.
void put_ranges(OrderedJson& json, const char* key, const Manifest& manifest, uint32_t thread,
                Lane lane, uint64_t records) {
  const std::vector<RecordRange> ranges = record_ranges(manifest.gaps, thread, lane, records);
  if (ranges.empty() || (ranges.size() == 1 && ranges[0].first_seq == 0)) return;
  for (const RecordRange& range : ranges) {
    json[key].push_back(OrderedJson::array({range.first_seq, range.records}));
  }
}

OrderedJson threads_json(const Manifest& manifest) {
  OrderedJson json = OrderedJson::array();
  for (const ManifestThread& thread : manifest.threads) {
    OrderedJson& one = json.emplace_back(thread_json(thread));
    put_ranges(one, "index_ranges", manifest, thread.id, Lane::kIndex, thread.events);
    put_ranges(one, "detail_ranges", manifest, thread.id, Lane::kDetail, thread.detail_records);
  }
  return json;
}

OrderedJson module_json(const ModuleInfo& module) {
  OrderedJson json = {{"module_id", module.module_id}, {"path", module.path}};
  // The public format leaves out what is not known.
  if (module.base_address != 0) json["base_address"] = hex_number(module.base_address);
  if (module.size != 0) json["size"] = module.size;
  if (module.build_id.size() == 16) json["uuid"] = uuid_text(module.build_id);
  if (!module.build_id.empty()) json["build_id"] = hex_bytes(module.build_id);
  json["loaded_ns"] = module.loaded_ns;
  if (module.unloaded_ns != 0) json["unloaded_ns"] = module.unloaded_ns;
  return json;
}

OrderedJson gap_json(const Gap& gap) {
  OrderedJson json = {{"thread", gap.thread},
                      {"lane", lane_name(gap.lane)},
                      {"before_seq", gap.before_seq},
                      {"lost", gap.lost},
                      {"numbered_lost", gap.numbered_lost},
                      {"first_ns", gap.first_ns},
                      {"last_ns", gap.last_ns},
                      {"reasons", lost_reason_names(gap.reasons)}};
  if (gap.merged > 1) json["merged"] = gap.merged;
  return json;
}

OrderedJson stall_json(const Stall& stall) {
  OrderedJson json = {{"kind", stall_kind_name(stall.kind)},
                      {"first_ns", stall.first_ns},
                      {"last_ns", stall.last_ns}};
  if (stall.thread) json["thread"] = *stall.thread;
  if (stall.count == 1) return json;
  json["joined"] = stall.count;
  json["stalled_ns"] = stall.stalled_ns;
  return json;
}

OrderedJson window_json(const DetailWindow& window) {
  return {{"mode", window.mode},
          {"start_ns", window.start_ns},
          {"end_ns", window.end_ns},
          {"pre_roll_from_ns", window.pre_roll_from_ns},
          {"pre_roll_records", window.pre_roll_records},
          {"reason", window.reason}};
}

template <class T, class Function>
OrderedJson list_json(const std::vector<T>& list, Function to_json) {
  OrderedJson json = OrderedJson::array();
  for (const T& item : list) json.push_back(to_json(item));
  return json;
}

OrderedJson switched_off_json(const SwitchedOffFunction& function) {
  return {{"at_ns", function.at_ns},
          {"function_id", hex_number(function.function_id)},
          {"calls_per_second", function.calls_per_second}};
}

OrderedJson filter_json(const FunctionFilter& filter) {
  const char* mode = !filter.only.empty()    ? "only"
                     : filter.except.empty() ? "everything"
                                             : "all_but";
  OrderedJson json = {{"at_ns", filter.at_ns},
                      {"mode", mode},
                      {"only", filter.only},
                      {"except", filter.except},
                      {"functions", filter.functions}};
  if (!filter.switched_off.empty()) {
    json["switched_off"] = list_json(filter.switched_off, switched_off_json);
  }
  return json;
}

OrderedJson clock_sync_json(const ClockSync& sync) {
  return {{"at_ns", sync.at_ns},
          {"offset_ns", sync.offset_ns},
          {"uncertainty_ns", sync.uncertainty_ns},
          {"drift_ppb", sync.drift_ppb},
          {"at_unix_ns", sync.at_unix_ns},
          {"boot_id", sync.boot_id}};
}

OrderedJson process_end_json(const ProcessEnd& end) {
  OrderedJson json = {{"how", process_end_name(end.how)}};
  if (end.how == ProcessEnd::How::kExited) json["exit_code"] = end.exit_code;
  if (end.how == ProcessEnd::How::kSignaled) {
    json["signal"] = end.signal;
    json["core_dumped"] = end.core_dumped;
  }
  return json;
}

OrderedJson totals_json(const Manifest& manifest) {
  const SessionTotals& totals = manifest.totals;
  OrderedJson json = {{"threads", totals.threads},
                      {"events", totals.events},
                      {"detail_records", totals.detail_records},
                      {"lost_events", totals.lost_events},
                      {"lost_detail_records", totals.lost_detail_records},
                      {"lost_without_stream", manifest.lost_without_stream},
                      {"stall_count", totals.stalls.count},
                      {"stalled_ns", totals.stalls.stalled_ns},
                      {"page_wait_ns", totals.stalls.page_wait_ns},
                      {"stored_bytes", totals.stored_bytes}};
  put_switches(json, totals.stalls);
  if (manifest.switches_lost != 0) json["switches_lost"] = manifest.switches_lost;
  if (totals.calls_left_out != 0) json["calls_left_out"] = totals.calls_left_out;
  return json;
}

OrderedJson symbol_json(const Symbol& symbol) {
  OrderedJson json = {{"function_id", hex_number(symbol.function_id)},
                      {"module_id", static_cast<uint32_t>(symbol.function_id >> 32)},
                      {"symbol_index", static_cast<uint32_t>(symbol.function_id)},
                      {"name", symbol.name}};
  if (!symbol.file.empty()) json.update({{"file", symbol.file}, {"line", symbol.line}});
  return json;
}

OrderedJson module_symbols_json(const ModuleSymbols& module) {
  OrderedJson json = {
      {"module_id", module.module_id}, {"functions", module.functions}, {"named", module.named}};
  if (!module.source.empty()) json["source"] = module.source;
  if (!module.problem.empty()) json["problem"] = module.problem;
  return json;
}

OrderedJson passthrough_stream_json(const PassthroughStream& stream) {
  OrderedJson json = {{"kind", passthrough_kind_name(stream.kind)},
                      {"file", passthrough_file_name(stream.kind)},
                      {"bytes", stream.bytes}};
  if (stream.refused_bytes != 0) json["refused_bytes"] = stream.refused_bytes;
  if (!stream.problem.empty()) json["problem"] = stream.problem;
  return json;
}

OrderedJson container_json(const Container& container) {
  return {{"name", container.name},
          {"state", container.state},
          {"bytes", container.bytes},
          {"first_ns", container.first_ns},
          {"last_ns", container.last_ns}};
}

OrderedJson marker_json(const Marker& marker) {
  return {{"at_ns", marker.at_ns}, {"text", marker.text}};
}

OrderedJson note_json(const Note& note) {
  return {{"at_unix_ns", note.at_unix_ns}, {"what", note.what}};
}

OrderedJson missing_input_json(const MissingInput& missing) {
  OrderedJson json = {{"what", missing.what}};
  if (missing.count != 0) json["count"] = missing.count;
  return json;
}

}  // namespace

bool Manifest::has_stream_of_others() const {
  return std::any_of(
      passthrough_streams.begin(), passthrough_streams.end(),
      [](const PassthroughStream& stream) { return stream.kind != PassthroughKind::kSwitches; });
}

std::string manifest_to_json(const Manifest& manifest) {
  const SessionIdentity& identity = manifest.identity;
  OrderedJson json;
  json["threads"] = threads_json(manifest);
  json["time_start_ns"] = manifest.time_start_ns;
  json["time_end_ns"] = manifest.time_end_ns;
  json["clock_type"] = static_cast<uint32_t>(identity.clock);
  json["modules"] = list_json(manifest.modules, module_json);
  json["symbols"] = list_json(manifest.symbols, symbol_json);
  json["format_version"] = identity.version == atf::Version::kV1 ? "2.1" : "2.2";
  json["state"] = session_state_name(manifest.state);
  json["reason"] = manifest.reason;
  if (manifest.sealing) json["sealing"] = session_state_name(manifest.sealing_state);
  json["created_unix_ns"] = manifest.created_unix_ns;
  json["finished_unix_ns"] = manifest.finished_unix_ns;
  if (identity.collector.is_known()) {
    json["collector"] = {{"id", hex_bytes(identity.collector.id)},
                         {"epoch", identity.collector.epoch}};
  }
  json["process"] = process_json(identity);
  if (manifest.process_end.how != ProcessEnd::How::kNotKnown) {
    json["process"]["end"] = process_end_json(manifest.process_end);
  }
  json["gaps"] = list_json(manifest.gaps, gap_json);
  std::vector<Stall> stalls = manifest.stalls;
  std::erase_if(stalls, [](const Stall& stall) { return is_in_switches_file(stall.kind); });
  if (!stalls.empty()) json["stalls"] = list_json(stalls, stall_json);
  json["detail_windows"] = list_json(manifest.detail_windows, window_json);
  if (manifest.detail_windows_left_out != 0) {
    json["detail_windows_left_out"] = manifest.detail_windows_left_out;
  }
  if (!manifest.function_filters.empty()) {
    json["function_filters"] = list_json(manifest.function_filters, filter_json);
  }
  if (manifest.function_filters_left_out != 0) {
    json["function_filters_left_out"] = manifest.function_filters_left_out;
  }
  json["clock_sync"] = list_json(manifest.clock_syncs, clock_sync_json);
  json["events"] = list_json(manifest.notes, note_json);
  if (manifest.notes_left_out != 0) json["events_left_out"] = manifest.notes_left_out;
  if (!manifest.input_missing.empty()) {
    json["input_missing"] = list_json(manifest.input_missing, missing_input_json);
  }
  if (manifest.input_missing_left_out != 0) {
    json["input_missing_left_out"] = manifest.input_missing_left_out;
  }
  json["module_symbols"] = list_json(manifest.module_symbols, module_symbols_json);
  if (manifest.symbols_left_out != 0) json["symbols_left_out"] = manifest.symbols_left_out;
  if (manifest.symbols_state != SymbolsState::kNone) {
    json["symbols_state"] = symbols_state_name(manifest.symbols_state);
  }
  if (manifest.symbols_tries != 0) json["symbols_tries"] = manifest.symbols_tries;
  if (!manifest.passthrough_streams.empty()) {
    json["streams"] = list_json(manifest.passthrough_streams, passthrough_stream_json);
  }
  json["containers"] = list_json(manifest.containers, container_json);
  if (manifest.containers_removed != 0) json["containers_removed"] = manifest.containers_removed;
  json["markers"] = list_json(manifest.markers, marker_json);
  if (manifest.markers_left_out != 0) json["markers_left_out"] = manifest.markers_left_out;
  json["totals"] = totals_json(manifest);
  return json.dump(1, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

std::string manifest_delta_to_json(const Manifest& delta) {
  OrderedJson json;
  json["threads"] = list_json(delta.threads, thread_json);
  const auto put = [&json](const char* key, const auto& list, auto to_json) {
    if (!list.empty()) json[key] = list_json(list, to_json);
  };
  put("modules", delta.modules, module_json);
  put("stalls", delta.stalls, stall_json);
  put("detail_windows", delta.detail_windows, window_json);
  put("function_filters", delta.function_filters, filter_json);
  put("clock_sync", delta.clock_syncs, clock_sync_json);
  put("events", delta.notes, note_json);
  put("markers", delta.markers, marker_json);
  if (delta.lost_without_stream + delta.switches_lost != 0) json["totals"] = totals_json(delta);
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace collect::storage
