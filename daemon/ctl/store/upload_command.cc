#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <set>

#include "daemon/ctl/store/store_commands.h"
#include "daemon/ctl/store/store_line.h"
#include "daemon/ctl/store/tables.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/upload/part_upload.h"
#include "formats/core/text/figures.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/select/recordings.h"

namespace collect::ctl {
namespace {

// "…/session_X/pid_Y" as a place below its root.
Result<storage::SessionPath> session_path_of(const std::string& directory) {
  const auto session_path = storage::parse_session_directory(directory);
  const auto name =
      session_path ? storage::parse_session_name(session_path->session) : std::nullopt;
  if (name && name->is_recorded()) return *session_path;
  return Error{Code::kInvalidArgument,
               directory + ": no session that was recorded, but a copy of one or none at all"};
}

Result<std::vector<storage::SessionPath>> session_paths_of(const std::vector<std::string>& paths) {
  std::set<std::string> seen;
  std::vector<storage::SessionPath> session_paths;
  for (const std::string& path : paths) {
    const auto sessions = select::sessions_of(path);
    if (!sessions.ok()) return sessions.error();
    for (const std::string& session : *sessions) {
      if (!seen.insert(session).second) continue;
      auto session_path = session_path_of(session);
      // Copies of sessions below a directory are skipped.
      if (!session_path.ok() && sessions->size() > 1) continue;
      if (!session_path.ok()) return session_path.error();
      session_paths.push_back(std::move(*session_path));
    }
  }
  std::sort(session_paths.begin(), session_paths.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return session_paths;
}

class Upload {
 public:
  Upload(upload::Store& store, upload::WantedTables tables, StoreLine& line)
      : line_(line),
        tables_(std::move(tables)),
        to_{store.client(),
            store.retries(),
            store.pauses(),
            store.clock(),
            store.max_bytes_per_s(),
            [this](uint64_t bytes) {
              sent_ += bytes;
              show();
            }},
        objects_(upload::UploadSizes(), to_) {}

  Result<upload::UploadedPart> run(const storage::SessionPath& session_path,
                                   const std::string& doing) {
    doing_ = doing;
    sent_ = 0;
    show();
    storage::PosixFs fs(session_path.directory);
    const auto manifest = storage::read_manifest(fs, session_path.directory);
    if (!manifest.ok()) return manifest.error();
    upload::PartUpload part(fs, objects_, to_, tables_);
    auto uploaded = part.run(session_path, upload::part_name_of(manifest->identity.collector));
    failed_at_store_ = !uploaded.ok() && part.failed_at_store();
    return uploaded;
  }
  uint64_t sent_bytes() const { return sent_; }
  bool failed_at_store() const { return failed_at_store_; }

 private:
  void show() {
    line_.show(doing_ + (sent_ == 0 ? "" : fmt::format(", {} sent", short_bytes(sent_))));
  }

  StoreLine& line_;
  const upload::WantedTables tables_;
  std::string doing_;
  uint64_t sent_ = 0;
  bool failed_at_store_ = false;
  const upload::SendingTo to_;
  upload::ObjectUpload objects_;
};

}  // namespace

int upload_sessions(const upload::StoreRequest& request, std::ostream& out, std::ostream& err) {
  const Answer answer{request.json, out, err};
  const auto session_paths = session_paths_of(request.paths);
  if (!session_paths.ok()) return answer.refuse(session_paths.error(), 2);
  const auto tables = upload::parse_store_tables(request.tables);
  if (!tables.ok()) return answer.refuse(tables.error(), 2);
  StoreLine line(err, request.progress);
  const auto store = open_store(request, line);
  if (!store.ok()) return answer.refuse(store.error(), 2);
  if (!(*store)->below().empty()) {
    return answer.refuse({Code::kInvalidArgument,
                          request.location.url + ": sessions go to a whole bucket, s3://BUCKET"},
                         2);
  }
  Upload upload(**store, wanted_tables(*tables), line);
  Json document = json_document();
  document["sessions"] = Json::array();
  int code = 0;
  for (size_t i = 0; i < session_paths->size(); ++i) {
    const storage::SessionPath& session_path = (*session_paths)[i];
    const auto part =
        upload.run(session_path, fmt::format("uploading {} of {}", i + 1, session_paths->size()));
    line.end();
    Json one = {{"path", session_path.directory}};
    if (!part.ok()) {
      code = 1;
      if (!request.json) {
        err << "collectctl: "
            << printable_sentence(fmt::format("{}: {}", session_path.name, part.error().message))
            << "\n";
      }
      one["error"] = error_json(part.error());
    } else {
      const bool was_there = part->outcome == upload::PartOutcome::kPresent;
      const std::string url = (*store)->url_of(part->prefix);
      one["url"] = url;
      one["was_there"] = was_there;
      one["bytes"] = part->file_bytes;
      one["sent_bytes"] = upload.sent_bytes();
      if (!request.json) {
        out << printable_sentence(fmt::format(
                   "{}: {}{}{}", session_path.name, short_bytes(part->file_bytes),
                   was_there ? ", was there, "
                             : fmt::format(", sent as {}, ", short_bytes(upload.sent_bytes())),
                   url))
            << "\n";
        out.flush();
      }
    }
    document["sessions"].push_back(std::move(one));
    // The next one would fail the same way.
    if (!part.ok() && upload.failed_at_store()) break;
  }
  if (request.json) {
    out << json_line(document);
    out.flush();
  }
  return code;
}

}  // namespace collect::ctl
