#include "storage/select/recordings.h"

#include <filesystem>

#include "storage/convert/whole_session.h"
#include "storage/model/session_layout.h"
#include "storage/model/switch_times.h"
#include "storage/read/session_search.h"

namespace collect::select {

namespace fs = std::filesystem;
using storage::SessionPart;

Result<std::vector<std::string>> sessions_of(const std::string& path) {
  std::error_code error;
  const fs::path place = fs::canonical(path, error);
  if (error) return errno_error(error.value(), path);
  if (fs::exists(place / storage::kManifestFile, error)) return std::vector{place.string()};
  const auto root = storage::RootedDirectory::open(place.string());
  if (!root.ok()) return root.error();
  bool all = true;
  std::vector<std::string> sessions;
  for (const read::FoundSession& found : read::find_sessions(*root, &all)) {
    sessions.push_back((place / found.below).string());
  }
  if (!all) return Error{Code::kLimit, path + ": too many directories; name the sessions"};
  if (sessions.empty()) return Error{Code::kNotFound, path + ": no session, and none below it"};
  return sessions;
}

Status Recordings::add(const std::string& directory) {
  if (!seen_.insert(directory).second) return {};
  SessionPart part;
  part.directory = directory;
  files_.push_back(std::make_unique<storage::PosixFs>(directory));
  part.fs = files_.back().get();
  auto manifest = storage::read_manifest(*part.fs, directory);
  if (!manifest.ok()) return manifest.error();
  part.manifest = std::move(*manifest);
  COLLECT_TRY(storage::read_switches(*part.fs, directory, part.manifest.stalls));
  const storage::SessionIdentity& identity = part.manifest.identity;
  if (identity.process_id == std::array<uint8_t, 16>{}) {
    return Error{Code::kUnsupported,
                 directory + ": its manifest does not say which process it is of"};
  }
  parts_[{identity.process_id, identity.recording}].push_back(std::move(part));
  return {};
}

Result<MergedRecording> merge_recording(std::vector<SessionPart> parts, const std::string& output,
                                        const storage::MakingProgress& progress) {
  MergedRecording merged;
  merged.parts = parts;
  auto directory =
      convert::make_whole_session(output, [&](const std::string& root) -> Result<std::string> {
        auto files = storage::PosixFs::hold(root);
        if (!files.ok()) return files.error();
        storage::SessionOptions options;
        options.root = files->root();
        options.symbolize = false;
        auto report = storage::merge_parts(*files, options, std::move(parts), progress);
        if (!report.ok()) return report.error();
        merged.report = std::move(*report);
        return merged.report.session.directory;
      });
  if (!directory.ok()) return directory.error();
  merged.directory = std::move(*directory);
  return merged;
}

}  // namespace collect::select
