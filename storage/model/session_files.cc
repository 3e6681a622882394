#include "storage/model/session_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "storage/model/thread_leftovers.h"

namespace collect::storage {
namespace {

constexpr std::array<std::string_view, 4> kThreadFiles = {kDetailFile, kIndexFile, kLodFile,
                                                          kStreamJournalFile};
// Files of a writer that was interrupted: not handed out, but removed with the rest.
constexpr std::array<std::string_view, 5> kLeftovers = {
    kContainerTemporaryFile, kManifestTemporaryFile, kPackedLanesTemporaryFile, kReserveFile,
    kResumeKeyFile};

bool is_one_of(std::string_view name, const auto& names) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_thread_file(std::string_view name) {
  return is_one_of(name, kThreadFiles) || parse_unlinked_file_name(name);
}

bool is_session_file(std::string_view name) {
  if (name == kManifestFile || name == kPackedLanesFile || parse_container_name(name)) return true;
  return std::any_of(std::begin(kPassthroughKinds), std::end(kPassthroughKinds),
                     [name](PassthroughKind kind) { return name == passthrough_file_name(kind); });
}

struct Names {
  std::vector<std::string> files;    // of the session's own directory
  std::vector<uint32_t> threads;     // by number
  std::vector<std::string> strange;  // not ours
};

Result<Names> names_of(Fs& fs, const SessionPath& session_path) {
  auto entries = fs.list_directory(session_path.directory);
  if (!entries.ok()) return entries.error();
  Names names;
  for (std::string& entry : *entries) {
    if (const auto thread = parse_thread_directory(entry)) {
      names.threads.push_back(*thread);
    } else if (is_session_file(entry) || is_one_of(entry, kLeftovers)) {
      names.files.push_back(std::move(entry));
    } else {
      names.strange.push_back(std::move(entry));
    }
  }
  std::sort(names.threads.begin(), names.threads.end());
  return names;
}

std::optional<uint64_t> size_of(Fs& fs, const std::string& path) {
  auto file = fs.open(path, OpenMode::kRead);
  if (!file.ok()) return std::nullopt;
  const auto bytes = (*file)->size();
  if (!bytes.ok()) return std::nullopt;
  return *bytes;
}

class Removal {
 public:
  explicit Removal(Fs& fs) : fs_(fs) {}

  Status file(const std::string& path) {
    const std::optional<uint64_t> bytes = size_of(fs_, path);
    COLLECT_TRY(fs_.remove_file(path));
    ++removed_.files;
    removed_.bytes += bytes.value_or(0);
    return {};
  }

  Status thread(const std::string& directory) {
    auto names = fs_.list_directory(directory);
    if (!names.ok()) return names.error();
    bool emptied = true;
    for (const std::string& name : *names) {
      if (is_thread_file(name) || is_one_of(name, kThreadTemporaryFiles)) {
        COLLECT_TRY(file(fmt::format("{}/{}", directory, name)));
      } else {
        not_ours(fmt::format("{}/{}", directory, name));
        emptied = false;
      }
    }
    return emptied ? fs_.remove_directory(directory) : Status();
  }

  void not_ours(const std::string& path) { strange(path + " is not ours"); }
  void strange(std::string sentence) { strange_.push_back(std::move(sentence)); }
  bool found_strange() const { return !strange_.empty(); }
  Error strange_error() const {
    return {Code::kAlreadyExists, fmt::format("{}: {} such entries stay, with their directory",
                                              strange_.front(), strange_.size())};
  }
  const RemovedFiles& removed() const { return removed_; }

 private:
  Fs& fs_;
  RemovedFiles removed_;
  std::vector<std::string> strange_;  // sentences
};

}  // namespace

void remove_half_made_lods(Fs& fs, const std::string& directory) {
  const auto names = fs.list_directory(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    if (!parse_thread_directory(name)) continue;
    const std::string path = fmt::format("{}/{}/{}", directory, name, kLodTemporaryFile);
    if (fs.exists(path)) (void)fs.remove_file(path);  // the next maker does
  }
}

bool is_session_path(std::string_view path) {
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return is_session_file(path);
  return parse_thread_directory(path.substr(0, slash)) && is_thread_file(path.substr(slash + 1));
}

Result<std::vector<SessionFileInfo>> list_session_files(Fs& fs, const SessionPath& session_path) {
  const auto names = names_of(fs, session_path);
  if (!names.ok()) return names.error();
  std::vector<SessionFileInfo> files;
  const auto add = [&](std::string path) {
    const auto bytes = size_of(fs, fmt::format("{}/{}", session_path.directory, path));
    if (bytes) files.push_back({std::move(path), *bytes});
  };
  for (const std::string& name : names->files) {
    if (is_session_file(name)) add(name);
  }
  for (const uint32_t thread : names->threads) {
    const std::string directory = thread_directory_name(thread);
    auto entries = fs.list_directory(fmt::format("{}/{}", session_path.directory, directory));
    if (!entries.ok()) continue;
    for (const std::string& name : *entries) {
      if (is_thread_file(name)) add(fmt::format("{}/{}", directory, name));
    }
  }
  return files;
}

Result<RemovedFiles> remove_session(Fs& fs, const SessionPath& session_path) {
  const auto names = names_of(fs, session_path);
  if (!names.ok()) return names.error();
  Removal removal(fs);
  for (const std::string& name : names->strange)
    removal.not_ours(fmt::format("{}/{}", session_path.directory, name));
  for (const uint32_t thread : names->threads) {
    const Status removed =
        removal.thread(fmt::format("{}/{}", session_path.directory, thread_directory_name(thread)));
    if (removed.ok()) continue;
    if (removed.code() != Code::kPermission) return removed.error();
    removal.strange(removed.error().message);  // a link: what is behind it is not looked at
  }
  bool has_manifest = false;
  for (const std::string& name : names->files) {
    if (name == kManifestFile) {
      has_manifest = true;
    } else {
      COLLECT_TRY(removal.file(fmt::format("{}/{}", session_path.directory, name)));
    }
  }
  if (removal.found_strange()) return removal.strange_error();
  if (has_manifest)
    COLLECT_TRY(removal.file(fmt::format("{}/{}", session_path.directory, kManifestFile)));
  COLLECT_TRY(fs.remove_directory(session_path.directory));
  // The directory of the second, unless another process has a session in it.
  (void)fs.remove_directory(session_path.directory.substr(0, session_path.directory.rfind('/')));
  return removal.removed();
}

}  // namespace collect::storage
