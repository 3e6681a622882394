// A session into a session of the same version: every file of it, byte for byte, also those of
// other programs. What the input lacks is added to the copy's manifest. A packed one is unpacked.
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "storage/convert/conversions.h"
#include "storage/fs/posix_fs.h"
#include "storage/fs/rooted_directory.h"
#include "storage/model/session_layout.h"
#include "storage/packed/pack_session.h"
#include "storage/read/session_search.h"

namespace collect::convert {
namespace {

namespace fs = std::filesystem;
using storage::FileUse;
using storage::RootedDirectory;

constexpr size_t kCopyBytes = size_t{1} << 20;

// What belongs to a running recording and not to what was recorded.
bool is_left_behind(const std::string& name) {
  return name == storage::kResumeKeyFile || name == storage::kReserveFile ||
         name == storage::kManifestTemporaryFile || name == storage::kDetailTemporaryFile;
}

Status write_all(int fd, const std::string& path, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_error(errno, path);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  return {};
}

class SessionCopier {
 public:
  SessionCopier(RootedDirectory from, RootedDirectory to, ConvertLog& log)
      : from_(std::move(from)), to_(std::move(to)), log_(log), buffer_(kCopyBytes) {}

  Status directory(const std::string& below, int depth) {
    const auto names = from_.list(below);
    if (!names.ok()) return names.error();
    for (const std::string& name : *names) {
      const std::string path = below.empty() ? name : fmt::format("{}/{}", below, name);
      if (is_left_behind(name)) continue;
      const auto status = from_.look_at(path);
      if (!status.ok()) return status.error();
      if (S_ISREG(status->st_mode)) {
        COLLECT_TRY(file(path));
      } else if (S_ISDIR(status->st_mode) && depth < read::kMaxSearchDepth) {
        COLLECT_TRY(to_.make_directory(path));
        COLLECT_TRY(directory(path, depth + 1));
      } else {
        log_.missing(from_.path_of(path) + ": neither a file nor a directory; not copied");
      }
    }
    return {};
  }

  // Writes the manifest with what is missing from the input in it.
  Status add_missing(const std::string& text) {
    auto json = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!json.is_object()) return {};  // said among what is missing
    auto& list = json["input_missing"];
    if (!list.is_array()) list = nlohmann::ordered_json::array();
    uint64_t left_out = log_.missing_left_out();
    for (const storage::MissingInput& missing : log_.missing()) {
      if (list.size() == storage::kMaxMissingInput) {
        ++left_out;
        continue;
      }
      auto& one = list.emplace_back(nlohmann::ordered_json{{"what", missing.what}});
      if (missing.count != 0) one["count"] = missing.count;
    }
    if (left_out != 0) json["input_missing_left_out"] = left_out;
    if (json.value("state", "") == "complete") json["state"] = "recovered";
    COLLECT_TRY(to_.remove_file(storage::kManifestFile));
    const auto file = to_.open_file(storage::kManifestFile, FileUse::kCreate);
    if (!file.ok()) return file.error();
    const std::string changed =
        json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    return write_all(file->get(), to_.path_of(storage::kManifestFile),
                     {reinterpret_cast<const uint8_t*>(changed.data()), changed.size()});
  }

 private:
  Status file(const std::string& below) {
    const auto in = from_.open_file(below, FileUse::kRead);
    if (!in.ok()) return in.error();
    const auto out = to_.open_file(below, FileUse::kCreate);
    if (!out.ok()) return out.error();
    for (;;) {
      const ssize_t got = ::read(in->get(), buffer_.data(), buffer_.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(errno, from_.path_of(below));
      if (got == 0) return {};
      COLLECT_TRY(write_all(out->get(), to_.path_of(below),
                            Bytes(buffer_).first(static_cast<size_t>(got))));
    }
  }

  const RootedDirectory from_;
  const RootedDirectory to_;
  ConvertLog& log_;
  std::vector<uint8_t> buffer_;
};

Status unpack_copy(const std::string& root, const std::string& directory) {
  const auto copy = storage::parse_session_directory(directory);
  if (!copy) {
    return Error{Code::kUnsupported,
                 directory + ": packed, and not named session_…/pid_…; give it such a name"};
  }
  auto below = RootedDirectory::open(root);
  if (!below.ok()) return below.error();
  storage::PosixFs files(std::move(*below));
  const auto unpacked = storage::unpack_session(files, *copy);
  return unpacked.ok() ? Status() : Status(unpacked.error());
}

}  // namespace

Result<std::string> copy_session(const read::Trace& trace, const std::string& root,
                                 ConvertLog& log) {
  if (trace.kind != read::TraceKind::kSession) {
    return Error{Code::kInvalidArgument,
                 trace.path + ": a part of a session; name the session's directory"};
  }
  std::error_code error;
  const fs::path place = fs::canonical(trace.path, error);
  if (error) return errno_error(error.value(), trace.path);
  // The names of others' directories are taken as they are: they are in the user's hands already.
  const fs::path session = fs::path(root) / place.parent_path().filename();
  const fs::path target = session / place.filename();
  for (const fs::path& one : {session, target}) {
    fs::create_directory(one, error);
    if (error) return errno_error(error.value(), one.string());
  }
  auto from = RootedDirectory::open(place.string());
  if (!from.ok()) return from.error();
  auto to = RootedDirectory::open(target.string());
  if (!to.ok()) return to.error();
  const atf::SessionReader reader(trace.files());
  log.count("events", reader.events());
  SessionCopier copier(std::move(*from), std::move(*to), log);
  COLLECT_TRY(copier.directory("", 0));
  if (fs::exists(target / storage::kPackedLanesFile, error)) {
    COLLECT_TRY(unpack_copy(root, target.string()));
  }
  if (!log.is_input_whole() && trace.manifest) COLLECT_TRY(copier.add_missing(*trace.manifest));
  return target.string();
}

}  // namespace collect::convert
