#include "daemon/ctl/control/download.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/ctl/terminal/text_out.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"
#include "storage/model/session_files.h"
#include "storage/model/untrusted_file.h"
#include "storage/read/session_files.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr char kManifest[] = "manifest.json";
// A session that is packed or unpacked meanwhile has other files then.
constexpr int kMostListings = 3;

// What one download did, for the last line.
struct Fetched {
  uint64_t files = 0;
  uint64_t bytes = 0;
  uint64_t kept = 0;
};

// What tells one recording from all others, and a copy of it from one that was made later.
struct Identity {
  std::string text;                                 // the manifest as it is
  std::optional<storage::SessionIdentity> process;  // what it says
  bool is_sealed = false;                           // nothing but names comes to it any more

  static Identity of(std::string manifest) {
    Identity identity{std::move(manifest), std::nullopt};
    if (auto parsed = storage::manifest_from_json(identity.text); parsed.ok()) {
      identity.process = parsed->identity;
      identity.is_sealed = parsed->state != storage::SessionState::kRecording;
    }
    return identity;
  }
  bool is_same(const Identity& other) const {
    if (text == other.text) return true;
    return process && other.process && process->process_id == other.process->process_id &&
           process->recording == other.process->recording &&
           process->start_unix_ns == other.process->start_unix_ns;
  }
};

Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Result<std::string> text_of(storage::Fs& disk, const std::string& path) {
  auto file = disk.open(path, storage::OpenMode::kRead);
  if (!file.ok()) return file.error();
  const auto size = (*file)->size();
  if (!size.ok()) return size.error();
  if (*size > storage::kMaxManifestBytes)
    return Error{Code::kLimit, path + ": too large for a manifest"};
  std::string text(*size, '\0');
  const auto got =
      (*file)->read_at(0, std::span<uint8_t>(reinterpret_cast<uint8_t*>(text.data()), text.size()));
  if (!got.ok()) return got.error();
  text.resize(*got);
  return text;
}

// The collector's words become paths: only what a session may have.
std::set<std::string> names_of(const api::ListFilesResponse& listed) {
  std::set<std::string> names;
  for (const api::SessionFile& file : listed.files()) {
    if (storage::is_session_path(file.path())) names.insert(file.path());
  }
  return names;
}

bool is_whole(storage::Fs& disk, const std::string& path, uint64_t bytes) {
  auto file = disk.open(path, storage::OpenMode::kRead);
  if (!file.ok()) return false;
  const auto size = (*file)->size();
  return size.ok() && *size == bytes;
}

class Downloader {
 public:
  // `root` is the user's own word; `directory` is the root or is below it.
  Downloader(const Online& online, Client& client, const api::ListFilesResponse& listed,
             const std::string& root, std::string directory)
      : online_(online),
        client_(client),
        session_(listed.session()),
        sealed_(listed.state() == api::SESSION_STATE_COMPLETE ||
                listed.state() == api::SESSION_STATE_RECOVERED ||
                listed.state() == api::SESSION_STATE_FAILED),
        directory_(std::move(directory)),
        disk_(root) {
    names_ = names_of(listed);
  }

  // It has other files by now.
  void list_again(const api::ListFilesResponse& listed) {
    gone_.merge(names_);
    names_ = names_of(listed);
  }
  // Once the others are here: what it had, and has no more.
  Status remove_gone() {
    for (const std::string& name : gone_) {
      if (names_.contains(name)) continue;
      COLLECT_TRY(clear(name, true));
      if (name.find('/') == name.npos) continue;
      (void)disk_.remove_directory(  // unless something else is in it
          fmt::format("{}/{}", directory_, name.substr(0, name.find('/'))));
    }
    return {};
  }

  bool sealed() const { return sealed_; }
  const Fetched& fetched() const { return fetched_; }

  // The manifest, once nothing of `files` would take the place of something else.
  Status begin(const std::vector<api::SessionFile>& files, bool force) {
    std::string manifest;
    const auto end = client_.download(session_, kManifest, 0, [&](const std::string& data) {
      manifest += data;
      return manifest.size() <= storage::kMaxManifestBytes
                 ? Status()
                 : Status(Error{Code::kLimit, "the manifest is too large"});
    });
    if (!end.ok()) return end.error();
    const std::string path = fmt::format("{}/{}", directory_, kManifest);
    const auto present = text_of(disk_, path);
    const Identity copied = Identity::of(present.ok() ? *present : "");
    if (present.ok() && copied.is_same(Identity::of(manifest))) {
      if (*present == manifest) {
        ++fetched_.kept;
        return {};
      }
      // Files and parts that were copied while it recorded have other headers than those at its
      // end.
      if (!copied.is_sealed) {
        for (const std::string& name : names_) COLLECT_TRY(clear(name, true));
      }
    } else {
      COLLECT_TRY(clear(kManifest, force));
      for (const api::SessionFile& file : files) COLLECT_TRY(clear(file.path(), force));
    }
    COLLECT_TRY(disk_.make_directories(directory_));
    auto part = storage::UntrustedFile::open(disk_, path, manifest.size(), space_, false);
    if (!part.ok()) return part.error();
    COLLECT_TRY(part->append(bytes_of(manifest)));
    COLLECT_TRY(part->finish(true));
    ++fetched_.files;
    fetched_.bytes += manifest.size();
    return {};
  }

  Status fetch(const api::SessionFile& file) {
    if (file.path() == kManifest) return {};  // begin() had it
    const std::string path = fmt::format("{}/{}", directory_, file.path());
    const bool has_size = sealed_ && names_.contains(file.path());
    if (has_size && is_whole(disk_, path, file.size_bytes())) {
      ++fetched_.kept;
      return {};
    }
    COLLECT_TRY(disk_.make_directories(fs::path(path).parent_path().string()));
    // A session that records may have more than it had when it was listed.
    const auto announced = has_size ? std::optional(file.size_bytes()) : std::nullopt;
    auto part = storage::UntrustedFile::open(disk_, path, announced, space_, sealed_);
    if (!part.ok()) return part.error();
    const uint64_t from = part->size();
    const auto end = client_.download(session_, file.path(), from, [&](const std::string& data) {
      const Status stored = part->append(bytes_of(data));
      show(file, part->size());
      return stored;
    });
    if (!end.ok()) return end.error();
    COLLECT_TRY(part->finish(true));
    ++fetched_.files;
    fetched_.bytes += part->size() - from;
    return {};
  }

  void end_line() {
    if (shown_) online_.err << "\n";
    shown_ = false;
  }

 private:
  // Nothing of someone else's stays at the name.
  Status clear(const std::string& name, bool force) {
    for (const std::string& path :
         {fmt::format("{}/{}", directory_, name),
          fmt::format("{}/{}{}", directory_, name, storage::kPartSuffix)}) {
      const auto there = disk_.open(path, storage::OpenMode::kRead);
      if (!there.ok() && there.code() == Code::kNotFound) continue;
      if (!force) {
        return Error{Code::kAlreadyExists,
                     fmt::format("{}: is there already, and not of {}; --force replaces it, -o "
                                 "names another directory",
                                 path, short_name(session_))};
      }
      COLLECT_TRY(disk_.remove_file(path));
    }
    return {};
  }

  void show(const api::SessionFile& file, uint64_t bytes) {
    if (!online_.terminal || online_.json) return;
    restart_line(online_.err);
    online_.err << printable(file.path()) << "  " << short_bytes(bytes);
    if (file.size_bytes() != 0) online_.err << " of " << short_bytes(file.size_bytes());
    online_.err.flush();
    shown_ = true;
  }

  const Online& online_;
  Client& client_;
  const std::string session_;
  const bool sealed_;
  const std::string directory_;
  std::set<std::string> names_;  // of all of its files
  std::set<std::string> gone_;   // of those of earlier lists
  storage::PosixFs disk_;
  storage::UntrustedSpace space_{disk_, directory_};
  Fetched fetched_;
  bool shown_ = false;
};

bool has_file(const api::ListFilesResponse& listed, std::string_view name) {
  return std::ranges::any_of(listed.files(), [&](const auto& file) { return file.path() == name; });
}

// Which the collector makes of the container.
bool is_packed_thread_file(const api::ListFilesResponse& listed, const std::string& name) {
  return name.find('/') != name.npos && storage::is_session_path(name) &&
         has_file(listed, storage::kPackedLanesFile);
}

// Those of `listed` that are asked for; the error names the first that is not there.
Result<std::vector<api::SessionFile>> wanted_files(const api::ListFilesResponse& listed,
                                                   const std::vector<std::string>& names) {
  if (names.empty())
    return std::vector<api::SessionFile>(listed.files().begin(), listed.files().end());
  std::vector<api::SessionFile> wanted;
  for (const std::string& name : names) {
    const auto found = std::find_if(listed.files().begin(), listed.files().end(),
                                    [&name](const auto& file) { return file.path() == name; });
    if (found == listed.files().end() && is_packed_thread_file(listed, name)) {
      wanted.emplace_back().set_path(name);
      continue;
    }
    if (found == listed.files().end()) {
      return Error{
          Code::kNotFound,
          fmt::format("{} has no file {}; see collectctl inspect --at-collector --files {}",
                      short_name(listed.session()), name, short_name(listed.session()))};
    }
    wanted.push_back(*found);
  }
  return wanted;
}

bool same_files(const api::ListFilesResponse& one, const api::ListFilesResponse& other) {
  return std::ranges::equal(one.files(), other.files(), {}, &api::SessionFile::path,
                            &api::SessionFile::path);
}

Status fetch_all(Downloader& downloader, const std::vector<api::SessionFile>& files, bool force) {
  for (const api::SessionFile& file : files) {
    if (storage::is_session_path(file.path())) continue;
    return Error{Code::kInvalidArgument,
                 fmt::format("\"{}\" is no file of a session; nothing is written", file.path())};
  }
  COLLECT_TRY(downloader.begin(files, force));
  for (const api::SessionFile& file : files) {
    const Status fetched = downloader.fetch(file);
    if (fetched.ok()) continue;
    if (fetched.code() == Code::kNotFound) return fetched;
    return Error{fetched.code(),
                 fetched.error().message + "; the same command continues where this ended"};
  }
  return {};
}

}  // namespace

int list_files(const Online& online, const std::string& session) {
  const auto files = Client(online.control).files(session);
  if (!files.ok()) return failed(online, files.error());
  if (online.json) {
    online.out << message_line(*files);
  } else {
    Table table({"BYTES", "FILE"});
    table.right(0);
    for (const api::SessionFile& file : files->files()) {
      table.add({with_thousands(file.size_bytes()), printable(file.path())});
    }
    online.out << table.text(online.columns);
  }
  online.out.flush();
  return kExitOk;
}

int download(const Online& online, const DownloadOptions& options) {
  Client client(online.control);
  auto listed = client.files(options.session);
  if (!listed.ok()) return failed(online, listed.error());
  const auto session_path = storage::parse_session_path(".", short_name(listed->session()));
  if (!session_path) {
    return failed(online, {Code::kDamaged,
                           fmt::format("the collector named a session \"{}\", which is no name",
                                       listed->session())});
  }
  auto wanted = wanted_files(*listed, options.files);
  if (!wanted.ok()) return failed(online, wanted.error());
  const std::string directory = options.output.empty() ? session_path->name : options.output;
  // The collector's own name for the session is below the working directory, for any name.
  const std::string root = options.output.empty() ? "." : options.output;
  Downloader downloader(online, client, *listed, root, directory);
  if (!downloader.sealed()) {
    online.err << "collectctl: " << session_path->name
               << " still records: its files are as they are now, without their ends; "
                  "collectctl recover completes them\n";
  }
  Status fetched = fetch_all(downloader, *wanted, options.force);
  for (int listings = 1; listings < kMostListings; ++listings) {
    if (fetched.ok() || fetched.code() != Code::kNotFound) break;
    auto now = client.files(listed->session());
    if (!now.ok() || same_files(*now, *listed)) break;
    wanted = wanted_files(*now, options.files);
    if (!wanted.ok()) break;
    listed = std::move(now);
    downloader.list_again(*listed);
    fetched = fetch_all(downloader, *wanted, options.force);
  }
  if (fetched.ok()) fetched = downloader.remove_gone();
  downloader.end_line();
  if (!fetched.ok()) return failed(online, fetched.error());
  const Fetched& sum = downloader.fetched();
  if (online.json) {
    Json document = json_document();
    document["directory"] = directory;
    document["files"] = sum.files;
    document["bytes"] = sum.bytes;
    document["kept"] = sum.kept;
    online.out << json_line(document);
  } else {
    online.out << printable(directory) << ": " << sum.files << " files, " << short_bytes(sum.bytes);
    if (sum.kept != 0) online.out << "; " << sum.kept << " were there already";
    online.out << "\n";
  }
  online.out.flush();
  return kExitOk;
}

int delete_session(const Online& online, const std::string& session) {
  const auto removed = Client(online.control).delete_session(session);
  if (!removed.ok()) return failed(online, removed.error());
  if (online.json) {
    online.out << message_line(*removed);
  } else {
    online.out << short_name(removed->session()) << ": removed " << removed->removed_files()
               << " files, " << short_bytes(removed->removed_bytes()) << "\n";
  }
  online.out.flush();
  return kExitOk;
}

}  // namespace collect::ctl
