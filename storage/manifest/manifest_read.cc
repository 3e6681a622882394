// The other direction of manifest.cc. Manifests of other writers, and damaged ones, come here too.
#include <fmt/core.h>

#include <unordered_set>
#include <utility>

#include "storage/fs/whole_file.h"
#include "storage/manifest/forgiven_json.h"
#include "storage/manifest/manifest.h"
#include "storage/manifest/manifest_values.h"
#include "storage/model/session_layout.h"

namespace collect::storage {
namespace {

using manifest_values::hex_number;
using manifest_values::Json;
using manifest_values::list_of;
using manifest_values::number;
using manifest_values::number32;
using manifest_values::read_list;
using manifest_values::said_number;
using manifest_values::said_number32;
using manifest_values::text;

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
    problems_.push_back(
        {fmt::format("/{}/{}{}", list, i, *key != 0 ? "/" + std::string(key) : std::string()),
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
      out_.identity = manifest_values::identity_of(*process);
      out_.process_end = manifest_values::process_end_of(*process);
    }
    const auto collector = json_.find("collector");
    if (collector != json_.end() && collector->is_object()) {
      out_.identity.collector = manifest_values::collector_of(*collector);
    }
    out_.identity.clock = static_cast<atf::ClockType>(number(json_, "clock_type") & 0xFF);
    // Files of others: without a "process" the version is in format_version alone.
    if (process == json_.end()) {
      out_.identity.version =
          text(json_, "format_version") == "2.2" ? atf::Version::kV2 : atf::Version::kV1;
    }
  }

  // Sessions of other writers have no state: they are none of ours to recover. One of ours whose
  // state is damaged may not be sealed.
  void read_state() {
    has_state_ = json_.contains("state");
    const auto process = json_.find("process");
    const bool is_ours =
        has_state_ || (process != json_.end() && process->is_object() &&
                       process->contains("process_id") && json_.contains("created_unix_ns"));
    out_.state =
        is_ours ? manifest_values::state_of(text(json_, "state")) : SessionState::kComplete;
    out_.reason = text(json_, "reason");
    out_.sealing = json_.contains("sealing");
    out_.sealing_state = manifest_values::state_of(text(json_, "sealing"));
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
        out_.threads.push_back(manifest_values::thread_of(item, has_state_));
      }
    });
  }

  void read_modules() {
    each("modules", [&](const Json& item, size_t at) {
      if (item.is_object() && said_number32(item, "module_id")) {
        out_.modules.push_back(manifest_values::module_of(item));
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
    read_list(json_, "module_symbols", out_.module_symbols, manifest_values::module_symbols_of);
    out_.symbols_left_out = number(json_, "symbols_left_out");
    out_.symbols_state = manifest_values::symbols_state_of(text(json_, "symbols_state"));
    out_.symbols_tries = number32(json_, "symbols_tries");
  }

  void read_losses() {
    each("gaps", [&](const Json& item, size_t at) {
      if (item.is_object() && said_number32(item, "thread") && said_number(item, "lost")) {
        out_.gaps.push_back(manifest_values::gap_of(item));
      } else {
        problem("gaps", at, "", "lacks the thread or the number of lost records");
      }
    });
    each("stalls", [&](const Json& item, size_t at) {
      const auto stall = item.is_object() ? manifest_values::stall_of(item) : std::nullopt;
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
    read_list(json_, "detail_windows", out_.detail_windows, manifest_values::window_of);
    out_.detail_windows_left_out = number(json_, "detail_windows_left_out");
    read_list(json_, "function_filters", out_.function_filters, manifest_values::filter_of);
    out_.function_filters_left_out = number(json_, "function_filters_left_out");
    read_list(json_, "clock_sync", out_.clock_syncs, manifest_values::clock_sync_of);
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
    manifest_values::read_passthrough_streams(json_, out_.passthrough_streams);
    read_list(json_, "containers", out_.containers, manifest_values::container_of);
    out_.containers_removed = number(json_, "containers_removed");
  }

  void read_totals() {
    static const Json kNoTotals = Json::object();
    const auto said = json_.find("totals");
    const Json& totals = said != json_.end() && said->is_object() ? *said : kNoTotals;
    out_.totals = manifest_values::totals_of(totals);
    out_.totals_unsaid = manifest_values::unsaid_keys(totals);
    out_.lost_without_stream = number(totals, "lost_without_stream");
    out_.switches_lost = number(totals, "switches_lost");
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
    return Error{Code::kLimit,
                 fmt::format("the manifest has a list of {} entries, at most {} are read",
                             list.size(), kMaxManifestList)};
  }
  ManifestReading unused;
  if (reading == nullptr) reading = &unused;
  reading->format_version = text(json, "format_version");
  reading->said_state = text(json, "state");
  return ManifestReader(json, reading->problems).run();
}

Result<std::string> read_manifest_json(Fs& fs, const std::string& directory) {
  return read_whole_file(fs, fmt::format("{}/{}", directory, kManifestFile), kMaxManifestBytes);
}

Result<Manifest> read_manifest(Fs& fs, const std::string& directory) {
  auto json = read_manifest_json(fs, directory);
  if (!json.ok()) return json.error();
  auto manifest = manifest_from_json(*json);
  if (!manifest.ok()) {
    return Error{manifest.code(),
                 fmt::format("{}/{}: {}", directory, kManifestFile, manifest.error().message)};
  }
  return manifest;
}

}  // namespace collect::storage
