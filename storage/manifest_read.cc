// The other direction of manifest.cc. Manifests of other writers, and damaged ones, come here too.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

#include "storage/manifest.h"
#include "storage/session_layout.h"
#include "storage/whole_file.h"

namespace collect::storage {
namespace {

// Not ordered_json: that looks at every key before, for each key of an object.
using Json = nlohmann::json;

constexpr SessionState kStates[] = {SessionState::kRecording, SessionState::kComplete,
                                    SessionState::kRecovered, SessionState::kFailed};

// ---- reading: a key of the wrong type is as good as a missing one

uint64_t number(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_integer()) return 0;
  return it->get<uint64_t>();
}

uint32_t number32(const Json& json, const char* key) {
  const uint64_t value = number(json, key);
  return value <= UINT32_MAX ? static_cast<uint32_t>(value) : 0;
}

std::string text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool flag(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_boolean() && it->get<bool>();
}

uint64_t hex_value(const std::string& text) {
  if (!text.starts_with("0x")) return 0;
  uint64_t value = 0;
  std::from_chars(text.data() + 2, text.data() + text.size(), value, 16);
  return value;
}

std::vector<uint8_t> bytes_of_hex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc{} || end != hex.data() + i + 2) return {};
    bytes.push_back(byte);
  }
  return bytes;
}

template <class T, class Function>
void read_list(const Json& json, const char* key, std::vector<T>& out, Function from_json) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_array()) return;
  for (const Json& item : *it) {
    if (item.is_object()) out.push_back(from_json(item));
  }
}

SessionState state_of(const std::string& name) {
  for (const SessionState state : kStates) {
    if (session_state_name(state) == name) return state;
  }
  return SessionState::kRecording;
}

SessionIdentity identity_of(const Json& json) {
  SessionIdentity identity;
  const std::vector<uint8_t> process_id = bytes_of_hex(text(json, "process_id"));
  if (process_id.size() == identity.process_id.size()) {
    std::copy(process_id.begin(), process_id.end(), identity.process_id.begin());
  }
  identity.recording = number32(json, "recording");
  identity.pid = number32(json, "pid");
  identity.parent_pid = number32(json, "parent_pid");
  identity.process_name = text(json, "name");
  identity.executable = text(json, "executable");
  identity.device_id = text(json, "device_id");
  identity.device_model = text(json, "device_model");
  identity.boot_id = text(json, "boot_id");
  identity.route = text(json, "route");
  identity.tag = text(json, "tag");
  identity.agent_version = text(json, "agent_version");
  identity.arch = static_cast<atf::Arch>(number(json, "arch") & 0xFF);
  identity.os = static_cast<atf::Os>(number(json, "os") & 0xFF);
  identity.version = number(json, "atf_version") == 1 ? atf::Version::kV1 : atf::Version::kV2;
  identity.start_ns = number(json, "start_ns");
  identity.start_unix_ns = number(json, "start_unix_ns");
  identity.max_depth = number32(json, "max_depth");
  identity.longer_than_ns = number(json, "longer_than_ns");
  return identity;
}

ProcessEnd process_end_of(const Json& process) {
  ProcessEnd end;
  const auto json = process.find("end");
  if (json == process.end() || !json->is_object()) return end;
  const std::string how = text(*json, "how");
  for (const ProcessEnd::How known : {ProcessEnd::How::kExited, ProcessEnd::How::kSignaled,
                                      ProcessEnd::How::kExeced, ProcessEnd::How::kUnknown}) {
    if (process_end_name(known) == how) end.how = known;
  }
  end.exit_code = static_cast<int32_t>(number(*json, "exit_code"));
  end.signal = number32(*json, "signal");
  end.core_dumped = flag(*json, "core_dumped");
  return end;
}

StallTotals stall_totals_of(const Json& json) {
  return {number(json, "stall_count"), number(json, "stalled_ns"), number(json, "page_wait_ns")};
}

// Whether the threads of a manifest without `ended` have ended depends on who wrote it: files of
// others have no state and no ends.
ManifestThread thread_of(const Json& json, bool has_state) {
  ManifestThread thread;
  thread.id = number32(json, "id");
  thread.stream_id = number32(json, "stream_id");
  thread.thread_id = number32(json, "thread_id");
  thread.name = text(json, "name");
  thread.has_detail = flag(json, "has_detail");
  thread.ended = has_state ? flag(json, "ended") : true;
  thread.events = number(json, "events");
  thread.detail_records = number(json, "detail_records");
  thread.lost_events = number(json, "lost_events");
  thread.lost_detail_records = number(json, "lost_detail_records");
  thread.calls_left_out = number(json, "calls_left_out");
  thread.index_next = number(json, "index_next");
  thread.detail_next = number(json, "detail_next");
  thread.start_ns = number(json, "start_ns");
  thread.end_ns = number(json, "end_ns");
  thread.first_ns = number(json, "time_start_ns");
  thread.last_ns = number(json, "time_end_ns");
  thread.stalls = stall_totals_of(json);
  return thread;
}

ModuleInfo module_of(const Json& json) {
  ModuleInfo module;
  module.module_id = number32(json, "module_id");
  module.path = text(json, "path");
  module.build_id = bytes_of_hex(text(json, "build_id"));
  module.base_address = hex_value(text(json, "base_address"));
  module.size = number(json, "size");
  module.loaded_ns = number(json, "loaded_ns");
  module.unloaded_ns = number(json, "unloaded_ns");
  return module;
}

Gap gap_of(const Json& json) {
  Gap gap;
  gap.thread = number32(json, "thread");
  gap.lane = text(json, "lane") == lane_name(Lane::kDetail) ? Lane::kDetail : Lane::kIndex;
  gap.before_seq = number(json, "before_seq");
  gap.lost = number(json, "lost");
  gap.numbered_lost = number(json, "numbered_lost");
  gap.first_ns = number(json, "first_ns");
  gap.last_ns = number(json, "last_ns");
  gap.merged = std::max(1u, number32(json, "merged"));
  const auto reasons = json.find("reasons");
  if (reasons == json.end() || !reasons->is_array()) return gap;
  for (const Json& reason : *reasons) {
    for (const LostReasonName& known : kLostReasonNames) {
      if (reason.is_string() && reason.get<std::string>() == known.name) gap.reasons |= known.bit;
    }
  }
  return gap;
}

// What makes no sense, or is of a kind of later versions, is left out.
void read_stalls(const Json& json, std::vector<Stall>& out) {
  const auto list = json.find("stalls");
  if (list == json.end() || !list->is_array()) return;
  for (const Json& item : *list) {
    const auto kind = item.is_object() ? stall_kind_of(text(item, "kind")) : std::nullopt;
    if (!kind) continue;
    const uint64_t first_ns = number(item, "first_ns");
    const uint64_t last_ns = number(item, "last_ns");
    if (last_ns <= first_ns) continue;
    Stall stall = make_stall(*kind, first_ns, last_ns);
    if (const uint64_t joined = number(item, "joined"); joined > 1) {
      stall.count = joined;
      stall.stalled_ns = std::min(stall.stalled_ns, number(item, "stalled_ns"));
    }
    if (item.contains("thread")) stall.thread = number32(item, "thread");
    out.push_back(stall);
  }
}

DetailWindow window_of(const Json& json) {
  DetailWindow window;
  window.mode = text(json, "mode");
  window.start_ns = number(json, "start_ns");
  window.end_ns = number(json, "end_ns");
  window.pre_roll_from_ns = number(json, "pre_roll_from_ns");
  window.pre_roll_records = number(json, "pre_roll_records");
  window.reason = text(json, "reason");
  return window;
}

std::vector<std::string> texts_of(const Json& json, const char* key) {
  std::vector<std::string> texts;
  const auto list = json.find(key);
  if (list == json.end() || !list->is_array()) return texts;
  for (const Json& item : *list) {
    if (!item.is_string() || texts.size() == kMaxFilterPatterns) continue;
    texts.push_back(item.get<std::string>());
    bound_text(texts.back());
  }
  return texts;
}

FunctionFilter filter_of(const Json& json) {
  return {number(json, "at_ns"), texts_of(json, "only"), texts_of(json, "except"),
          number(json, "functions")};
}

ClockSync clock_sync_of(const Json& json) {
  ClockSync sync;
  sync.at_ns = number(json, "at_ns");
  sync.offset_ns = static_cast<int64_t>(number(json, "offset_ns"));
  sync.uncertainty_ns = number(json, "uncertainty_ns");
  const auto drift = json.find("drift_ppb");
  if (drift != json.end() && drift->is_number()) sync.drift_ppb = drift->get<double>();
  sync.at_unix_ns = number(json, "at_unix_ns");
  sync.boot_id = text(json, "boot_id");
  return sync;
}

SymbolsState symbols_state_of(std::string_view name) {
  for (const SymbolsState state :
       {SymbolsState::kPending, SymbolsState::kDone, SymbolsState::kFailed}) {
    if (name == symbols_state_name(state)) return state;
  }
  return SymbolsState::kNone;
}

ModuleSymbols module_symbols_of(const Json& json) {
  ModuleSymbols module;
  module.module_id = number32(json, "module_id");
  module.functions = number(json, "functions");
  module.named = number(json, "named");
  module.source = text(json, "source");
  module.problem = text(json, "problem");
  return module;
}

Container container_of(const Json& json) {
  return {text(json, "name"), text(json, "state"), number(json, "bytes"), number(json, "first_ns"),
          number(json, "last_ns")};
}

// The file's name follows from the kind: what the manifest says of it is never used.
void read_passthrough_streams(const Json& json, std::vector<PassthroughStream>& out) {
  const auto list = json.find("foreign_streams");
  if (list == json.end() || !list->is_array()) return;
  for (const PassthroughKind kind : kPassthroughKinds) {
    for (const Json& item : *list) {
      if (!item.is_object() || text(item, "kind") != passthrough_kind_name(kind)) continue;
      out.push_back(
          {kind, number(item, "bytes"), number(item, "refused_bytes"), text(item, "problem")});
      break;
    }
  }
}

SessionTotals totals_of(const Json& json) {
  SessionTotals totals;
  totals.threads = number32(json, "threads");
  totals.events = number(json, "events");
  totals.detail_records = number(json, "detail_records");
  totals.lost_events = number(json, "lost_events");
  totals.lost_detail_records = number(json, "lost_detail_records");
  totals.calls_left_out = number(json, "calls_left_out");
  totals.stored_bytes = number(json, "stored_bytes");
  totals.stalls = stall_totals_of(json);
  return totals;
}

}  // namespace

Result<Manifest> manifest_from_json(std::string_view text_json) {
  if (const Status shape = check_json_shape(text_json, kManifestShape); !shape.ok()) {
    return Error{shape.code(), "manifest: " + shape.error().message};
  }
  const Json json = Json::parse(text_json, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) {
    return Error{Code::kDamaged, "manifest: not a JSON object"};
  }
  const auto threads = json.find("threads");
  if (threads == json.end() || !threads->is_array()) {
    return Error{Code::kDamaged, "manifest: no list of threads"};
  }
  for (const auto& [key, list] : json.items()) {
    if (!list.is_array() || list.size() <= kMaxManifestList) continue;
    return Error{Code::kLimit, "manifest: a list has " + std::to_string(list.size()) +
                                   " entries, at most " + std::to_string(kMaxManifestList) +
                                   " are read"};
  }
  Manifest manifest;
  if (const auto process = json.find("process"); process != json.end() && process->is_object()) {
    manifest.identity = identity_of(*process);
    manifest.process_end = process_end_of(*process);
  }
  manifest.identity.clock = static_cast<atf::ClockType>(number(json, "clock_type") & 0xFF);
  // Files of others: without a "process" the version stands in format_version alone.
  if (!json.contains("process")) {
    manifest.identity.version =
        text(json, "format_version") == "2.2" ? atf::Version::kV2 : atf::Version::kV1;
  }
  // Sessions of other writers have no state: they are none of ours to recover.
  const bool has_state = json.contains("state");
  manifest.state = has_state ? state_of(text(json, "state")) : SessionState::kComplete;
  manifest.reason = text(json, "reason");
  manifest.sealing = json.contains("sealing");
  manifest.sealing_state = state_of(text(json, "sealing"));
  manifest.time_start_ns = number(json, "time_start_ns");
  manifest.time_end_ns = number(json, "time_end_ns");
  manifest.created_unix_ns = number(json, "created_unix_ns");
  manifest.finished_unix_ns = number(json, "finished_unix_ns");
  read_list(json, "threads", manifest.threads,
            [has_state](const Json& thread) { return thread_of(thread, has_state); });
  read_list(json, "modules", manifest.modules, module_of);
  read_list(json, "symbols", manifest.symbols, [](const Json& symbol) {
    return Symbol{hex_value(text(symbol, "function_id")), text(symbol, "name"),
                  text(symbol, "file"), number32(symbol, "line")};
  });
  read_list(json, "module_symbols", manifest.module_symbols, module_symbols_of);
  read_list(json, "gaps", manifest.gaps, gap_of);
  read_stalls(json, manifest.stalls);
  read_list(json, "detail_windows", manifest.detail_windows, window_of);
  read_list(json, "function_filters", manifest.function_filters, filter_of);
  manifest.function_filters_left_out = number(json, "function_filters_left_out");
  read_list(json, "clock_sync", manifest.clock_syncs, clock_sync_of);
  read_list(json, "events", manifest.notes,
            [](const Json& note) { return Note{number(note, "at_unix_ns"), text(note, "what")}; });
  read_list(json, "input_missing", manifest.input_missing, [](const Json& missing) {
    return MissingInput{text(missing, "what"), number(missing, "count")};
  });
  manifest.input_missing_left_out = number(json, "input_missing_left_out");
  read_passthrough_streams(json, manifest.passthrough_streams);
  read_list(json, "containers", manifest.containers, container_of);
  manifest.containers_removed = number(json, "containers_removed");
  read_list(json, "markers", manifest.markers, [](const Json& marker) {
    return Marker{number(marker, "at_ns"), text(marker, "text")};
  });
  manifest.markers_left_out = number(json, "markers_left_out");
  manifest.detail_windows_left_out = number(json, "detail_windows_left_out");
  manifest.notes_left_out = number(json, "events_left_out");
  manifest.symbols_left_out = number(json, "symbols_left_out");
  manifest.symbols_state = symbols_state_of(text(json, "symbols_state"));
  manifest.symbols_tries = number32(json, "symbols_tries");
  if (const auto totals = json.find("totals"); totals != json.end() && totals->is_object()) {
    manifest.totals = totals_of(*totals);
    manifest.lost_without_stream = number(*totals, "lost_without_stream");
  }
  for (const Container& container : manifest.containers) {
    manifest.totals.container_bytes += container.bytes;
  }
  manifest.totals.first_ns = manifest.time_start_ns;
  manifest.totals.last_ns = manifest.time_end_ns;
  return manifest;
}

Result<std::string> read_manifest_json(Fs& fs, const std::string& directory) {
  return read_whole_file(fs, directory + "/" + kManifestFile, kMaxManifestBytes);
}

Result<Manifest> read_manifest(Fs& fs, const std::string& directory) {
  auto json = read_manifest_json(fs, directory);
  if (!json.ok()) return json.error();
  auto manifest = manifest_from_json(*json);
  if (!manifest.ok()) {
    return Error{manifest.code(),
                 directory + "/" + kManifestFile + ": " + manifest.error().message};
  }
  return manifest;
}

}  // namespace collect::storage
