#include "storage/rebuild/made_session.h"

#include <fmt/core.h>

#include <utility>

#include "storage/model/session_files.h"
#include "storage/session/space_guard.h"

namespace collect::storage {
namespace {

// From the directory that it was built in to its own name.
Status publish(Fs& fs, const std::string& built, const std::string& root,
               const SessionPath& session_path) {
  const std::string target = fmt::format("{}/{}", root, session_path.session);
  // No one else gives such a name; and a directory with something in it is never replaced.
  if (fs.exists(target)) return Error{Code::kAlreadyExists, target + " is there already"};
  COLLECT_TRY(fs.rename(built, target));
  return fs.sync_directory(root);
}

}  // namespace

Status check_room(Fs& fs, const SessionOptions& options, uint64_t bytes, uint64_t threads) {
  SpaceGuard space(fs, options.root,
                   {options.max_session_bytes, options.keep_free_bytes, options.keep_free_files});
  COLLECT_TRY(space.admit(0, bytes));
  return space.admit_files(kFilesPerSession + kFilesPerThread * threads);
}

SessionOptions making_options(const SessionOptions& options) {
  SessionOptions inner = options;
  inner.root = fmt::format("{}/{}", options.root, kConvertingDirectory);
  inner.capture.enabled = false;
  return inner;
}

Result<MadeSession> make_session(Fs& fs, const SessionOptions& options,
                                 const SessionPath& session_path,
                                 const std::function<Result<ReplayReport>()>& build) {
  COLLECT_TRY(remove_unfinished_sessions(fs, options.root));
  auto report = build();
  Status done = report.ok() ? Status() : Status(report.error());
  if (done.ok()) {
    const std::string& built = report->directory;
    done = publish(fs, built.substr(0, built.rfind('/')), options.root, session_path);
  }
  const Status removed = remove_unfinished_sessions(fs, options.root);
  COLLECT_TRY(done);
  COLLECT_TRY(removed);
  MadeSession made{session_path, std::move(*report), {}};
  made.report.directory = session_path.directory;
  auto written = read_manifest(fs, session_path.directory);
  if (!written.ok()) return written.error();
  made.manifest = std::move(*written);
  return made;
}

Status remove_unfinished_sessions(Fs& fs, const std::string& root) {
  const std::string directory = fmt::format("{}/{}", root, kConvertingDirectory);
  if (!fs.exists(directory)) return {};
  auto session_paths = list_sessions(fs, directory);
  if (!session_paths.ok()) return session_paths.error();
  for (const SessionPath& session_path : *session_paths) {
    const auto removed = remove_session(fs, session_path);
    if (!removed.ok()) return removed.error();
  }
  // One that was just being made has no pid directory yet.
  const auto sessions = fs.list_directory(directory);
  if (!sessions.ok()) return sessions.error();
  for (const std::string& session : *sessions) {
    if (is_session_name(session))
      COLLECT_TRY(fs.remove_directory(fmt::format("{}/{}", directory, session)));
  }
  return fs.remove_directory(directory);
}

}  // namespace collect::storage
