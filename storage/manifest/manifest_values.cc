#include "storage/manifest/manifest_values.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "formats/core/text/hex.h"
#include "storage/model/session_layout.h"

namespace collect::storage::manifest_values {
namespace {

constexpr SessionState kStates[] = {SessionState::kRecording, SessionState::kComplete,
                                    SessionState::kRecovered, SessionState::kFailed};

int64_t signed_number(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_number_integer() ? it->get<int64_t>() : 0;
}

bool flag(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it != json.end() && it->is_boolean() && it->get<bool>();
}

StallTotals stall_totals_of(const Json& json) {
  return {number(json, "stall_count"), number(json, "stalled_ns"),   number(json, "page_wait_ns"),
          number(json, "switches"),    number(json, "blocked_ns"),   number(json, "preempted_ns"),
          number(json, "lock_waits"),  number(json, "lock_wait_ns"), number(json, "samples")};
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

}  // namespace

std::optional<uint64_t> said_number(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || !it->is_number_unsigned()) return std::nullopt;
  return it->get<uint64_t>();
}

uint64_t number(const Json& json, const char* key) {
  return said_number(json, key).value_or(0);
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
  identity.switches = flag(json, "switches");
  identity.no_switches = text(json, "no_switches");
  identity.sample_hz = number32(json, "sample_hz");
  identity.no_samples = text(json, "no_samples");
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
  if (const auto names = json.find("names"); names != json.end() && names->is_array()) {
    for (const Json& one : *names) {
      if (!one.is_object() || thread.names.size() == kMaxThreadNames) continue;
      thread.names.push_back({number(one, "from_ns"), text(one, "name")});
    }
  }
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
    for (const Json& item : list_of(json, "streams")) {
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

}  // namespace collect::storage::manifest_values
