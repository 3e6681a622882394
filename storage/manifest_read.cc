// The other direction of manifest.cc. Manifests of other writers, and damaged ones, come here too.
#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>
#include <unordered_set>
#include <utility>

#include "formats/core/hex.h"
#include "storage/forgiven_json.h"
#include "storage/manifest.h"
#include "storage/session_layout.h"
#include "storage/whole_file.h"

namespace collect::storage {
namespace {

// Not ordered_json: that looks at every key before, for each key of an object.
using Json = nlohmann::json;

constexpr SessionState kStates[] = {SessionState::kRecording, SessionState::kComplete,
                                    SessionState::kRecovered, SessionState::kFailed};

// A key of the wrong type is as good as a missing one.

std::optional<uint64_t> said_number(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_unsigned()) return std::nullopt;
  return it->get<uint64_t>();
}

uint64_t number(const Json& json, const char* key) {
  return said_number(json, key).value_or(0);
}

int64_t signed_number(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

std::optional<uint32_t> said_number32(const Json& json, const char* key) {
  const auto value = said_number(json, key);
  if (!value || *value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

uint32_t number32(const Json& json, const char* key) {
  return said_number32(json, key).value_or(0);
}

std::string text(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_string() ? it->get<std::string>() : std::string();
}

bool flag(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_boolean() && it->get<bool>();
}

// 0x and up to 16 digits.
std::optional<uint64_t> hex_number(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) {
    return std::nullopt;
  }
  uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 2, end, value, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return value;
}

const Json& list_of(const Json& json, const char* key) {
  static const Json kEmpty = Json::array();
  const auto it = json.find(key);
  return it != json.end() && it->is_array() ? *it : kEmpty;
}

// What lies in the list `key`, as `from_json` makes it of an object; nothing of what else is there.
template <class T, class Function>
void read_list(const Json& json, const char* key, std::vector<T>& out, Function from_json) {
  for (const Json& item : list_of(json, key)) {
    if (item.is_object()) out.push_back(from_json(item));
  }
}

uint8_t unsaid_keys(const Json& json) {
  constexpr std::pair<ManifestKey, const char*> kNames[] = {
      {kEventsKey, "events"},          {kDetailRecordsKey, "detail_records"},
      {kLostEventsKey, "lost_events"}, {kLostDetailRecordsKey, "lost_detail_records"},
      {kThreadIdKey, "thread_id"},
  };
  uint8_t unsaid = 0;
  for (const auto& [key, name] : kNames) {
    if (!said_number(json, name)) unsaid |= key;
  }
  return unsaid;
}

SessionState state_of(const std::string& name) {
  for (const SessionState state : kStates) {
    if (session_state_name(state) == name) return state;
  }
  return SessionState::kRecording;
}

CollectorIdentity collector_of(const Json& json) {
  CollectorIdentity collector;
  const std::vector<uint8_t> id = bytes_of_hex(text(json, "id"));
  if (id.size() == collector.id.size()) std::copy(id.begin(), id.end(), collector.id.begin());
  collector.epoch = number(json, "epoch");
  return collector;
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
  identity.max_rate = number32(json, "max_rate");
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
  end.exit_code = static_cast<int32_t>(signed_number(*json, "exit_code"));
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
  thread.unsaid = unsaid_keys(json);
  return thread;
}

ModuleInfo module_of(const Json& json) {
  ModuleInfo module;
  module.module_id = number32(json, "module_id");
  module.path = text(json, "path");
  module.build_id = bytes_of_hex(text(json, "build_id"));
  module.base_address = hex_number(text(json, "base_address")).value_or(0);
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
  gap.has_place = said_number(json, "before_seq").has_value();
  gap.lost = number(json, "lost");
  gap.numbered_lost = number(json, "numbered_lost");
  gap.first_ns = number(json, "first_ns");
  gap.last_ns = number(json, "last_ns");
  gap.merged = std::max(1u, number32(json, "merged"));
  for (const Json& reason : list_of(json, "reasons")) {
    for (const LostReasonName& known : kLostReasonNames) {
      if (reason.is_string() && reason.get<std::string>() == known.name) gap.reasons |= known.bit;
    }
  }
  return gap;
}

// None for what makes no sense, or is of a kind of later versions.
std::optional<Stall> stall_of(const Json& json) {
  const auto kind = stall_kind_of(text(json, "kind"));
  const uint64_t first_ns = number(json, "first_ns");
  const uint64_t last_ns = number(json, "last_ns");
  if (!kind || last_ns <= first_ns) return std::nullopt;
  Stall stall = make_stall(*kind, first_ns, last_ns);
  stall.count = std::max<uint64_t>(number(json, "joined"), 1);
  stall.stalled_ns =
      std::min(said_number(json, "stalled_ns").value_or(stall.stalled_ns), stall.stalled_ns);
  stall.thread = said_number32(json, "thread");
  return stall;
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
  for (const Json& item : list_of(json, key)) {
    if (!item.is_string() || texts.size() == kMaxFilterPatterns) continue;
    texts.push_back(item.get<std::string>());
    bound_text(texts.back());
  }
  return texts;
}

FunctionFilter filter_of(const Json& json) {
  FunctionFilter filter{number(json, "at_ns"), texts_of(json, "only"), texts_of(json, "except"),
                        number(json, "functions")};
  for (const Json& item : list_of(json, "switched_off")) {
    const auto id = item.is_object() ? hex_number(text(item, "function_id")) : std::nullopt;
    if (!id || filter.switched_off.size() == kMaxSwitchedOff) continue;
    filter.switched_off.push_back({number(item, "at_ns"), *id, number(item, "calls_per_second")});
  }
  return filter;
}

ClockSync clock_sync_of(const Json& json) {
  ClockSync sync;
  sync.at_ns = number(json, "at_ns");
  sync.offset_ns = signed_number(json, "offset_ns");
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
  for (const PassthroughKind kind : kPassthroughKinds) {
    for (const Json& item : list_of(json, "foreign_streams")) {
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

Json parse(std::string_view text, bool leniently) {
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  for (const bool replace_high_bytes : {false, true}) {
    if (!leniently || !json.is_discarded()) break;
    json =
        Json::parse(forgiven_json(text, replace_high_bytes), nullptr, /*allow_exceptions=*/false);
  }
  return json;
}

class ManifestReader {
 public:
  ManifestReader(const Json& json, std::vector<ManifestProblem>& problems)
      : json_(json), problems_(problems) {}

  Manifest run() {
    read_process();
    read_state();
    read_threads();
    read_modules();
    read_symbols();
    read_losses();
    read_recording();
    read_files();
    read_totals();
    return std::move(out_);
  }

 private:
  void problem(const char* list, size_t i, const char* key, std::string sentence) {
    if (problems_.size() >= ManifestReading::kMaxProblems) return;
    problems_.push_back({"/" + std::string(list) + "/" + std::to_string(i) +
                             (*key != 0 ? "/" + std::string(key) : std::string()),
                         std::move(sentence)});
  }

  // `take` gets each entry of the list and its position.
  template <class Function>
  void each(const char* list, Function take) {
    size_t at = 0;
    for (const Json& item : list_of(json_, list)) take(item, at++);
  }

  void read_process() {
    const auto process = json_.find("process");
    if (process != json_.end() && process->is_object()) {
      out_.identity = identity_of(*process);
      out_.process_end = process_end_of(*process);
    }
    const auto collector = json_.find("collector");
    if (collector != json_.end() && collector->is_object()) {
      out_.identity.collector = collector_of(*collector);
    }
    out_.identity.clock = static_cast<atf::ClockType>(number(json_, "clock_type") & 0xFF);
    // Files of others: without a "process" the version stands in format_version alone.
    if (process == json_.end()) {
      out_.identity.version =
          text(json_, "format_version") == "2.2" ? atf::Version::kV2 : atf::Version::kV1;
    }
  }

  // Sessions of other writers have no state: they are none of ours to recover.
  void read_state() {
    has_state_ = json_.contains("state");
    out_.state = has_state_ ? state_of(text(json_, "state")) : SessionState::kComplete;
    out_.reason = text(json_, "reason");
    out_.sealing = json_.contains("sealing");
    out_.sealing_state = state_of(text(json_, "sealing"));
    out_.time_start_ns = number(json_, "time_start_ns");
    out_.time_end_ns = number(json_, "time_end_ns");
    out_.created_unix_ns = number(json_, "created_unix_ns");
    out_.finished_unix_ns = number(json_, "finished_unix_ns");
  }

  void read_threads() {
    std::unordered_set<uint32_t> ids;
    each("threads", [&](const Json& item, size_t at) {
      const auto id = item.is_object() ? said_number32(item, "id") : std::nullopt;
      if (!id) {
        problem("threads", at, "id", "is no thread number");
      } else if (!ids.insert(*id).second) {
        problem("threads", at, "id", "is listed twice");
      } else {
        out_.threads.push_back(thread_of(item, has_state_));
      }
    });
  }

  void read_modules() {
    each("modules", [&](const Json& item, size_t at) {
      if (item.is_object() && said_number32(item, "module_id")) {
        out_.modules.push_back(module_of(item));
      } else {
        problem("modules", at, "module_id", "is no module number");
      }
    });
  }

  void read_symbols() {
    each("symbols", [&](const Json& item, size_t at) {
      const auto id = item.is_object() ? hex_number(text(item, "function_id")) : std::nullopt;
      if (!id) {
        problem("symbols", at, "function_id", "is no hex string of at most 16 digits");
        return;
      }
      const auto module = said_number32(item, "module_id");
      const auto index = said_number32(item, "symbol_index");
      if ((module && *module != *id >> 32) || (index && *index != (*id & UINT32_MAX))) {
        problem("symbols", at, "", "module_id and symbol_index do not make up the function_id");
      }
      out_.symbols.push_back({*id, text(item, "name"), text(item, "file"), number32(item, "line")});
    });
    read_list(json_, "module_symbols", out_.module_symbols, module_symbols_of);
    out_.symbols_left_out = number(json_, "symbols_left_out");
    out_.symbols_state = symbols_state_of(text(json_, "symbols_state"));
    out_.symbols_tries = number32(json_, "symbols_tries");
  }

  void read_losses() {
    each("gaps", [&](const Json& item, size_t at) {
      if (item.is_object() && said_number32(item, "thread") && said_number(item, "lost")) {
        out_.gaps.push_back(gap_of(item));
      } else {
        problem("gaps", at, "", "lacks the thread or the number of lost records");
      }
    });
    each("stalls", [&](const Json& item, size_t at) {
      const auto stall = item.is_object() ? stall_of(item) : std::nullopt;
      if (stall) {
        out_.stalls.push_back(*stall);
      } else {
        problem("stalls", at, "", "lacks the kind, or its times contradict each other");
      }
    });
    read_list(json_, "input_missing", out_.input_missing, [](const Json& missing) {
      return MissingInput{text(missing, "what"), number(missing, "count")};
    });
    out_.input_missing_left_out = number(json_, "input_missing_left_out");
  }

  void read_recording() {
    read_list(json_, "detail_windows", out_.detail_windows, window_of);
    out_.detail_windows_left_out = number(json_, "detail_windows_left_out");
    read_list(json_, "function_filters", out_.function_filters, filter_of);
    out_.function_filters_left_out = number(json_, "function_filters_left_out");
    read_list(json_, "clock_sync", out_.clock_syncs, clock_sync_of);
    read_list(json_, "events", out_.notes, [](const Json& note) {
      return Note{number(note, "at_unix_ns"), text(note, "what")};
    });
    out_.notes_left_out = number(json_, "events_left_out");
    read_list(json_, "markers", out_.markers, [](const Json& marker) {
      return Marker{number(marker, "at_ns"), text(marker, "text")};
    });
    out_.markers_left_out = number(json_, "markers_left_out");
  }

  void read_files() {
    read_passthrough_streams(json_, out_.passthrough_streams);
    read_list(json_, "containers", out_.containers, container_of);
    out_.containers_removed = number(json_, "containers_removed");
  }

  void read_totals() {
    static const Json kNone = Json::object();
    const auto said = json_.find("totals");
    const Json& totals = said != json_.end() && said->is_object() ? *said : kNone;
    out_.totals = totals_of(totals);
    out_.totals_unsaid = unsaid_keys(totals);
    out_.lost_without_stream = number(totals, "lost_without_stream");
    for (const Container& container : out_.containers) {
      out_.totals.container_bytes += container.bytes;
    }
    out_.totals.first_ns = out_.time_start_ns;
    out_.totals.last_ns = out_.time_end_ns;
  }

  const Json& json_;
  std::vector<ManifestProblem>& problems_;
  bool has_state_ = false;
  Manifest out_;
};

}  // namespace

Result<Manifest> manifest_from_json(std::string_view text_json, ManifestReading* reading) {
  if (const Status shape = check_json_shape(text_json, kManifestShape); !shape.ok()) {
    return Error{shape.code(), "the manifest " + shape.error().message};
  }
  const Json json = parse(text_json, reading != nullptr);
  if (json.is_discarded() || !json.is_object()) {
    return Error{Code::kDamaged, "the manifest is no JSON object"};
  }
  const auto threads = json.find("threads");
  if (threads == json.end() || !threads->is_array()) {
    return Error{Code::kDamaged, "the manifest has no list of threads"};
  }
  for (const auto& [key, list] : json.items()) {
    if (!list.is_array() || list.size() <= kMaxManifestList) continue;
    return Error{Code::kLimit, "the manifest has a list of " + std::to_string(list.size()) +
                                   " entries, at most " + std::to_string(kMaxManifestList) +
                                   " are read"};
  }
  ManifestReading unused;
  if (reading == nullptr) reading = &unused;
  reading->format_version = text(json, "format_version");
  reading->said_state = text(json, "state");
  return ManifestReader(json, reading->problems).run();
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
