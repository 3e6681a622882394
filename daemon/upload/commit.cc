#include "daemon/upload/commit.h"

#include <fmt/core.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "formats/core/text/hex.h"
#include "storage/manifest/record_ranges.h"
#include "storage/model/session_files.h"

namespace collect::upload {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const LaneRanges& lane) {
  Json ranges = Json::array();
  for (const NumberRange& range : lane.ranges) ranges.push_back({range.from, range.to});
  return {{"ranges", std::move(ranges)}, {"exact", lane.is_exact}};
}

// nlohmann takes a negative number, a fraction or one that is too large for another number.
template <class Number>
Number number_in(const Json& value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > std::numeric_limits<Number>::max()) {
    throw std::out_of_range("a number that cannot be: " + value.dump().substr(0, 40));
  }
  return static_cast<Number>(value.get<uint64_t>());
}
template <class Number>
Number number_of(const Json& json, const char* key) {
  return number_in<Number>(json.at(key));
}

LaneRanges lane_of(const Json& json) {
  LaneRanges lane;
  lane.is_exact = json.at("exact").get<bool>();
  for (const Json& range : json.at("ranges")) {
    lane.ranges.push_back({number_in<uint64_t>(range.at(0)), number_in<uint64_t>(range.at(1))});
  }
  return lane;
}

CommittedFile file_of(const Json& json) {
  CommittedFile file;
  file.path = json.at("path").get<std::string>();
  file.object = json.at("object").get<std::string>();
  file.is_compressed = json.at("encoding").get<std::string>() == "zstd";
  file.bytes = number_of<uint64_t>(json, "bytes");
  file.crc32c = number_of<uint32_t>(json, "crc32c");
  file.object_bytes = number_of<uint64_t>(json, "object_bytes");
  file.object_crc32c = number_of<uint32_t>(json, "object_crc32c");
  return file;
}

CommittedThread thread_of(const Json& json) {
  CommittedThread thread;
  thread.id = number_of<uint32_t>(json, "id");
  thread.stream_id = number_of<uint32_t>(json, "stream_id");
  thread.events = number_of<uint64_t>(json, "events");
  thread.detail_records = number_of<uint64_t>(json, "detail_records");
  thread.index = lane_of(json.at("index"));
  thread.detail = lane_of(json.at("detail"));
  return thread;
}

Commit parse(const Json& json) {
  Commit commit;
  commit.session = json.at("session").get<std::string>();
  commit.process_id = json.at("process_id").get<std::string>();
  commit.recording = number_of<uint32_t>(json, "recording");
  commit.device_id = json.at("device_id").get<std::string>();
  commit.state = json.at("state").get<std::string>();
  commit.part = {json.at("collector").get<std::string>(), json.at("epoch").get<std::string>()};
  for (const Json& file : json.at("files")) commit.files.push_back(file_of(file));
  for (const Json& thread : json.at("threads")) commit.threads.push_back(thread_of(thread));
  return commit;
}

bool is_process_id(std::string_view text) {
  return text.size() == 2 * sizeof(storage::SessionIdentity::process_id) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A store may say anything: what becomes a path, or a part of one, is looked at here, once.
Status check(const Commit& commit) {
  if (const Status name = check_part_name(commit.part); !name.ok()) {
    return Error{Code::kDamaged, "COMMIT: " + name.error().message};
  }
  if (!is_process_id(commit.process_id)) {
    return Error{Code::kDamaged,
                 fmt::format("COMMIT: no process id is '{}'", commit.process_id.substr(0, 100))};
  }
  if (!storage::parse_session_path("", commit.session)) {
    return Error{Code::kDamaged,
                 "COMMIT: no session can have the name " + commit.session.substr(0, 100)};
  }
  if (commit.files.size() > kMaxCommitFiles) {
    return Error{Code::kLimit, fmt::format("COMMIT: more than {} files", kMaxCommitFiles)};
  }
  std::set<std::string_view> paths;
  for (const CommittedFile& file : commit.files) {
    const ObjectName object = object_name(file.path);
    if (!storage::is_session_path(file.path) || file.object != object.name ||
        file.is_compressed != object.is_compressed || !paths.insert(file.path).second) {
      return Error{Code::kDamaged,
                   fmt::format("COMMIT: no session has a file '{}' in an object '{}'",
                               file.path.substr(0, 100), file.object.substr(0, 100))};
    }
  }
  return {};
}

}  // namespace

LaneRanges number_ranges(const storage::Manifest& manifest, uint32_t thread, Lane lane,
                         uint64_t records) {
  LaneRanges found;
  for (const auto& range : storage::record_ranges(manifest.gaps, thread, lane, records)) {
    found.ranges.push_back({range.first_seq, range.end_seq()});
    found.is_exact = range.is_exact;
  }
  return found;
}

Commit commit_of(const storage::Manifest& manifest, std::string_view session,
                 const PartName& part) {
  Commit commit;
  commit.session = std::string(session);
  commit.process_id = hex_bytes(manifest.identity.process_id);
  commit.recording = manifest.identity.recording;
  commit.device_id = manifest.identity.device_id;
  commit.state = std::string(storage::session_state_name(manifest.state));
  commit.part = part;
  for (const storage::ManifestThread& thread : manifest.threads) {
    commit.threads.push_back(
        {thread.id, thread.stream_id, thread.events, thread.detail_records,
         number_ranges(manifest, thread.id, Lane::kIndex, thread.events),
         number_ranges(manifest, thread.id, Lane::kDetail, thread.detail_records)});
  }
  return commit;
}

std::string commit_to_json(const Commit& commit) {
  Json files = Json::array();
  for (const CommittedFile& file : commit.files) {
    files.push_back({{"path", file.path},
                     {"object", file.object},
                     {"encoding", file.is_compressed ? "zstd" : "identity"},
                     {"bytes", file.bytes},
                     {"crc32c", file.crc32c},
                     {"object_bytes", file.object_bytes},
                     {"object_crc32c", file.object_crc32c}});
  }
  Json threads = Json::array();
  for (const CommittedThread& thread : commit.threads) {
    threads.push_back({{"id", thread.id},
                       {"stream_id", thread.stream_id},
                       {"events", thread.events},
                       {"detail_records", thread.detail_records},
                       {"index", json_of(thread.index)},
                       {"detail", json_of(thread.detail)}});
  }
  const Json json = {{"format", kCommitFormat},
                     {"session", commit.session},
                     {"process_id", commit.process_id},
                     {"recording", commit.recording},
                     {"device_id", commit.device_id},
                     {"state", commit.state},
                     {"collector", commit.part.collector},
                     {"epoch", commit.part.epoch},
                     {"files", std::move(files)},
                     {"threads", std::move(threads)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Commit> commit_from_json(std::string_view text) {
  if (text.size() > kMaxCommitBytes) {
    return Error{Code::kLimit, fmt::format("COMMIT: more than {} bytes", kMaxCommitBytes)};
  }
  if (const Status shape = check_json_shape(text, kCommitShape); !shape.ok()) {
    return Error{shape.code(), "COMMIT: " + shape.error().message};
  }
  try {
    const Json json = Json::parse(text);
    const std::string format = json.at("format").get<std::string>();
    if (format != kCommitFormat) {
      return Error{Code::kUnsupported, fmt::format("COMMIT: format '{}', this program reads '{}'",
                                                   format.substr(0, 100), kCommitFormat)};
    }
    Commit commit = parse(json);
    COLLECT_TRY(check(commit));
    return commit;
  } catch (const std::exception& error) {  // nlohmann's, and number_in's
    return Error{Code::kDamaged, std::string("COMMIT: ") + error.what()};
  }
}

}  // namespace collect::upload
