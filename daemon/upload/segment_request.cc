#include "daemon/upload/segment_request.h"

#include <nlohmann/json.hpp>

#include "storage/session_files.h"

namespace collect::upload {

using nlohmann::json;

// Of each file: path, removed, whole, cut_to or null, and the ranges one behind the other.
std::string SegmentRequest::to_line() const {
  json list = json::array();
  for (const auto& [path, file] : files) {
    json ranges = json::array();
    for (const auto& [from, to] : file.ranges) {
      ranges.push_back(from);
      ranges.push_back(to);
    }
    const json cut = file.cut_to ? json(*file.cut_to) : json(nullptr);
    list.push_back({path, file.is_removed, file.is_whole, cut, std::move(ranges)});
  }
  const json line = {{"id", id},
                     {"session", session},
                     {"first", is_first},
                     {"last", is_last},
                     {"files", std::move(list)}};
  return line.dump() + "\n";
}

Result<SegmentRequest> SegmentRequest::parse(std::string_view text) {
  SegmentRequest request;
  try {
    const json line = json::parse(text);
    line.at("id").get_to(request.id);
    line.at("session").get_to(request.session);
    line.at("first").get_to(request.is_first);
    line.at("last").get_to(request.is_last);
    for (const json& one : line.at("files")) {
      const auto path = one.at(0).get<std::string>();
      if (!storage::is_session_path(path)) {
        return Error{Code::kDamaged, "no request for segments: " + path + " is no session's file"};
      }
      storage::ChangedFile& file = request.files[path];
      one.at(1).get_to(file.is_removed);
      one.at(2).get_to(file.is_whole);
      if (!one.at(3).is_null()) file.cut_to = one.at(3).get<uint64_t>();
      const json& ranges = one.at(4);
      for (size_t i = 0; i + 1 < ranges.size(); i += 2) {
        file.write(ranges.at(i).get<uint64_t>(), ranges.at(i + 1).get<uint64_t>());
      }
    }
  } catch (const json::exception& error) {
    return Error{Code::kDamaged, std::string("no request for segments: ") + error.what()};
  }
  return request;
}

}  // namespace collect::upload
