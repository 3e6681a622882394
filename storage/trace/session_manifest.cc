#include "storage/trace/session_manifest.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "formats/core/json_shape.h"
#include "storage/manifest.h"
#include "storage/trace/session_files.h"

namespace collect::trace {
namespace {

using LenientJson = nlohmann::json;

// Inside strings, raw control characters become escapes and bytes above 0x7F that do not parse as
// UTF-8 later are replaced; outside, nothing changes.
std::string forgive(std::string_view text, bool replace_high_bytes) {
  std::string out;
  out.reserve(text.size() + 64);
  bool in_string = false;
  bool escaped = false;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (in_string && byte < 0x20) {
      constexpr char kHexDigits[] = "0123456789abcdef";
      out += "\\u00";
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
      escaped = false;
      continue;
    }
    if (replace_high_bytes && byte >= 0x80) {
      out += '?';
      escaped = false;
      continue;
    }
    out += c;
    if (escaped) {
      escaped = false;
    } else if (in_string && c == '\\') {
      escaped = true;
    } else if (c == '"') {
      in_string = !in_string;
    }
  }
  return out;
}

LenientJson parse_leniently(std::string_view text) {
  LenientJson json = LenientJson::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    json = LenientJson::parse(forgive(text, false), nullptr, /*allow_exceptions=*/false);
  }
  if (json.is_discarded()) {
    json = LenientJson::parse(forgive(text, true), nullptr, /*allow_exceptions=*/false);
  }
  return json;
}

std::optional<uint64_t> number(const LenientJson& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_unsigned()) return std::nullopt;
  return it->get<uint64_t>();
}

std::optional<uint32_t> number32(const LenientJson& object, const char* key) {
  const auto value = number(object, key);
  if (!value || *value > UINT32_MAX) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::string text_of(const LenientJson& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

const LenientJson& list_of(const LenientJson& object, const char* key) {
  static const LenientJson kEmpty = LenientJson::array();
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : kEmpty;
}

std::optional<uint64_t> hex_id(const LenientJson& value) {
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || (text[1] != 'x' && text[1] != 'X')) {
    return std::nullopt;
  }
  uint64_t id = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data() + 2, end, id, 16);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return id;
}

class Parse {
 public:
  explicit Parse(const LenientJson& json) : json_(json) {}

  SessionManifest run() {
    out_.format_version = text_of(json_, "format_version");
    out_.state = text_of(json_, "state");
    out_.reason = text_of(json_, "reason");
    out_.time_start_ns = number(json_, "time_start_ns").value_or(0);
    out_.time_end_ns = number(json_, "time_end_ns").value_or(0);
    threads();
    modules();
    symbols();
    losses();
    const auto process = json_.find("process");
    if (process != json_.end() && process->is_object()) {
      out_.process_name = text_of(*process, "name");
    }
    return std::move(out_);
  }

 private:
  void problem(const char* list, size_t i, const char* key, std::string sentence) {
    if (out_.problems.size() >= SessionManifest::kMaxProblems) return;
    out_.problems.push_back({"/" + std::string(list) + "/" + std::to_string(i) +
                                 (*key != 0 ? "/" + std::string(key) : std::string()),
                             std::move(sentence)});
  }

  void threads() {
    size_t i = 0;
    for (const LenientJson& item : list_of(json_, "threads")) {
      const size_t at = i++;
      const auto id = item.is_object() ? number32(item, "id") : std::nullopt;
      if (!id) {
        problem("threads", at, "id", "is no thread number");
        continue;
      }
      if (out_.thread(*id) != nullptr) {
        problem("threads", at, "id", "is listed twice");
        continue;
      }
      ManifestThread thread;
      thread.id = *id;
      const auto flag = item.find("has_detail");
      if (flag != item.end() && flag->is_boolean()) thread.has_detail = flag->get<bool>();
      const auto ended = item.find("ended");
      if (ended != item.end() && ended->is_boolean()) thread.ended = ended->get<bool>();
      thread.thread_id = number32(item, "thread_id");
      thread.name = text_of(item, "name");
      thread.events = number(item, "events");
      thread.detail_records = number(item, "detail_records");
      thread.lost_events = number(item, "lost_events");
      thread.lost_detail_records = number(item, "lost_detail_records");
      out_.positions.emplace(*id, out_.threads.size());
      out_.threads.push_back(std::move(thread));
    }
  }

  void modules() {
    size_t i = 0;
    for (const LenientJson& item : list_of(json_, "modules")) {
      const size_t at = i++;
      const auto id = item.is_object() ? number32(item, "module_id") : std::nullopt;
      if (!id) {
        problem("modules", at, "module_id", "is no module number");
        continue;
      }
      out_.modules.push_back({*id, text_of(item, "path")});
    }
  }

  void symbols() {
    size_t i = 0;
    for (const LenientJson& item : list_of(json_, "symbols")) {
      const size_t at = i++;
      const auto value = item.is_object() ? item.find("function_id") : item.end();
      const auto id = item.is_object() && value != item.end() ? hex_id(*value) : std::nullopt;
      if (!id) {
        problem("symbols", at, "function_id", "is no hex string of at most 16 digits");
        continue;
      }
      const auto module = number32(item, "module_id");
      const auto index = number32(item, "symbol_index");
      if ((module && *module != *id >> 32) || (index && *index != (*id & UINT32_MAX))) {
        problem("symbols", at, "", "module_id and symbol_index do not make up the function_id");
      }
      out_.symbols.push_back({*id,
                              text_of(item, "name"),
                              {text_of(item, "file"), number32(item, "line").value_or(0)}});
    }
  }

  void losses() {
    size_t i = 0;
    for (const LenientJson& item : list_of(json_, "gaps")) {
      const size_t at = i++;
      const auto thread = item.is_object() ? number32(item, "thread") : std::nullopt;
      const auto lost = item.is_object() ? number(item, "lost") : std::nullopt;
      if (!thread || !lost) {
        problem("gaps", at, "", "lacks the thread or the number of lost records");
        continue;
      }
      out_.gaps.push_back({*thread, text_of(item, "lane") == "detail", *lost,
                           number(item, "before_seq"), number(item, "first_ns").value_or(0),
                           number(item, "last_ns").value_or(0)});
    }
    std::stable_sort(out_.gaps.begin(), out_.gaps.end(),
                     [](const auto& a, const auto& b) { return a.thread < b.thread; });
    stalls();
    for (const LenientJson& item : list_of(json_, "input_missing")) {
      if (!item.is_object()) continue;
      out_.input_missing.push_back({text_of(item, "what"), number(item, "count").value_or(0)});
    }
    out_.input_missing_left_out = number(json_, "input_missing_left_out").value_or(0);
    const auto totals = json_.find("totals");
    if (totals == json_.end() || !totals->is_object()) return;
    out_.total_events = number(*totals, "events");
    out_.total_detail_records = number(*totals, "detail_records");
    out_.total_lost_events = number(*totals, "lost_events");
    out_.total_lost_detail_records = number(*totals, "lost_detail_records");
    out_.lost_without_stream = number(*totals, "lost_without_stream").value_or(0);
  }

  void stalls() {
    size_t i = 0;
    for (const LenientJson& item : list_of(json_, "stalls")) {
      const size_t at = i++;
      const bool is_object = item.is_object();
      const uint64_t first_ns = is_object ? number(item, "first_ns").value_or(0) : 0;
      const uint64_t last_ns = is_object ? number(item, "last_ns").value_or(0) : 0;
      const auto kind = storage::stall_kind_of(is_object ? text_of(item, "kind") : std::string());
      if (!kind || last_ns <= first_ns) {
        problem("stalls", at, "", "lacks the kind, or its times contradict each other");
        continue;
      }
      storage::Stall stall = storage::make_stall(*kind, first_ns, last_ns);
      stall.count = std::max<uint64_t>(number(item, "joined").value_or(1), 1);
      stall.stalled_ns =
          std::min(number(item, "stalled_ns").value_or(stall.stalled_ns), stall.stalled_ns);
      stall.thread = number32(item, "thread");
      out_.stalls.push_back(stall);
    }
    std::stable_sort(out_.stalls.begin(), out_.stalls.end(), [](const auto& a, const auto& b) {
      return a.thread != b.thread ? a.thread < b.thread : a.first_ns < b.first_ns;
    });
  }

  const LenientJson& json_;
  SessionManifest out_;
};

std::string file_name(const std::string& path) {
  const size_t slash = path.find_last_of("/\\");
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

void append_hex(std::string& to, uint64_t number) {
  char digits[16];
  const auto end = std::to_chars(digits, digits + sizeof digits, number, 16).ptr;
  to += "0x";
  to.append(digits, end);
}

}  // namespace

Result<SessionManifest> SessionManifest::parse(std::string_view text) {
  if (const Status shape = check_json_shape(text, storage::kManifestShape); !shape.ok()) {
    return Error{shape.code(), "the manifest " + shape.error().message};
  }
  const LenientJson json = parse_leniently(text);
  if (json.is_discarded() || !json.is_object()) {
    return Error{Code::kDamaged, "the manifest is no JSON object"};
  }
  const auto threads = json.find("threads");
  if (threads == json.end() || !threads->is_array()) {
    return Error{Code::kDamaged, "the manifest has no list of threads"};
  }
  return Parse(json).run();
}

const ManifestThread* SessionManifest::thread(uint32_t id) const {
  const auto at = positions.find(id);
  return at == positions.end() ? nullptr : &threads[at->second];
}

storage::StallTotals SessionManifest::stall_totals() const {
  storage::StallTotals totals;
  for (const storage::Stall& stall : stalls) totals.add(stall);
  return totals;
}

std::optional<storage::SessionHealth> SessionManifest::health() const {
  if (state.empty()) return std::nullopt;
  storage::HealthFacts facts;
  for (const storage::SessionState each :
       {storage::SessionState::kComplete, storage::SessionState::kRecovered,
        storage::SessionState::kFailed}) {
    if (state == storage::session_state_name(each)) facts.state = each;
  }
  facts.reason = reason;
  facts.lost_events = lost_without_stream;
  facts.input_missing = input_missing;
  facts.input_missing_left_out = input_missing_left_out;
  for (const ManifestThread& thread : threads) {
    facts.threads_not_ended += thread.ended ? 0 : 1;
    facts.lost_events += thread.lost_events.value_or(0);
    facts.lost_detail_records += thread.lost_detail_records.value_or(0);
  }
  return storage::health_of(facts);
}

std::optional<storage::SessionHealth> session_health(const Trace& trace,
                                                     const SessionManifest* manifest) {
  if (trace.kind != TraceKind::kSession) return std::nullopt;
  if (manifest != nullptr) return manifest->health();
  const auto& error = trace.manifest_error;
  const bool is_there = trace.manifest || (error && error->code != Code::kNotFound);
  return storage::health_without_manifest(is_there ? "the manifest cannot be read"
                                                   : "there is no manifest");
}

NameTable::NameTable(const SessionManifest& manifest) {
  symbols_.reserve(manifest.symbols.size());
  for (const ManifestSymbol& symbol : manifest.symbols) {
    if (!symbol.name.empty()) symbols_.emplace(symbol.function_id, symbol.name);
    if (!symbol.source.file.empty()) sources_.emplace(symbol.function_id, symbol.source);
  }
  for (const ManifestModule& module : manifest.modules) {
    modules_.emplace(module.module_id, file_name(module.path));
  }
}

std::string_view NameTable::name_of(uint64_t function_id) const {
  Cached& cached = cache_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits)];
  if (cached.name != nullptr && cached.function_id == function_id) return *cached.name;
  if (const auto it = symbols_.find(function_id); it != symbols_.end()) {
    cached = {function_id, &it->second};
    return it->second;
  }
  made_.clear();
  append_unnamed(made_, function_id);
  return made_;
}

void NameTable::append_name(std::string& to, uint64_t function_id) const {
  if (const auto it = symbols_.find(function_id); it != symbols_.end()) {
    to += it->second;
  } else {
    append_unnamed(to, function_id);
  }
}

const SourceLocation* NameTable::source_of(uint64_t function_id) const {
  const auto it = sources_.find(function_id);
  return it == sources_.end() ? nullptr : &it->second;
}

std::string NameTable::module_name_of(uint32_t module_id) const {
  const auto module = modules_.find(module_id);
  if (module != modules_.end() && !module->second.empty()) return module->second;
  std::string number;
  append_hex(number, module_id);
  return number;
}

void NameTable::append_unnamed(std::string& to, uint64_t function_id) const {
  const auto module = modules_.find(static_cast<uint32_t>(function_id >> 32));
  if (module == modules_.end() || module->second.empty()) {
    append_hex(to, function_id);
  } else {
    to += module->second;
    to += '+';
    append_hex(to, function_id & UINT32_MAX);
  }
}

}  // namespace collect::trace
