#include "daemon/ctl/record/android/app/library_pull.h"

#include <fmt/core.h>
#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>
#include <vector>

#include "formats/core/text/hex.h"
#include "formats/core/text/printable.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest_file.h"
#include "storage/read/unnamed_file.h"

namespace collect::ctl {
namespace {

struct Library {
  std::string path;  // on the phone
  std::string build_id;
};

// With functions in the session and no names for them, below the app's own code.
std::vector<Library> unnamed_libraries(const std::string& session, const AndroidApp& app) {
  storage::PosixFs files;
  const auto text = storage::read_manifest_json(files, session);
  const auto manifest =
      text.ok() ? storage::manifest_from_json(*text) : Result<storage::Manifest>(text.error());
  if (!manifest.ok()) return {};
  std::set<uint32_t> unnamed;
  for (const storage::ModuleSymbols& module : manifest->module_symbols) {
    if (module.named < module.functions) unnamed.insert(module.module_id);
  }
  std::vector<Library> libraries;
  for (const storage::ModuleInfo& module : manifest->modules) {
    const bool is_own = module.path.starts_with(app.code_directory + "/") &&
                        module.path.find('!') == std::string::npos;
    if (!is_own || module.build_id.empty() || !unnamed.contains(module.module_id)) continue;
    libraries.push_back({module.path, hex_bytes(module.build_id)});
  }
  return libraries;
}

}  // namespace

LibraryPull::~LibraryPull() {
  if (folder_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

Status LibraryPull::make_folder() {
  if (!folder_.empty()) return {};
  std::string name = read::temporary_directory() + "/collectctl-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) return errno_error(errno, read::temporary_directory());
  folder_ = name;
  return {};
}

Status LibraryPull::copy(const std::string& remote, const std::string& file) {
  if (count_ == kMaxPulledLibraries || bytes_left_ == 0) {
    return Error{Code::kLimit, "enough was copied from the phone"};
  }
  std::error_code none;
  if (Status pulled = device_.pull(remote, file, bytes_left_); !pulled.ok()) {
    std::filesystem::remove(file, none);
    return pulled;
  }
  ++count_;
  bytes_left_ -= std::filesystem::file_size(file, none);
  return {};
}

Result<std::string> LibraryPull::fetch_file(const std::string& remote) {
  COLLECT_TRY(make_folder());
  std::string file =
      fmt::format("{}/{}", folder_, std::filesystem::path(remote).filename().string());
  std::error_code none;
  if (std::filesystem::exists(file, none)) {
    return Error{Code::kAlreadyExists, "another one of its name was copied from the phone"};
  }
  COLLECT_TRY(copy(remote, file));
  return file;
}

std::string LibraryPull::fetch(const std::string& session) {
  bool any = false;
  for (const Library& library : unnamed_libraries(session, app_)) {
    Status done = make_folder();
    const std::string file = fmt::format("{}/{}.debug", folder_, library.build_id);
    std::error_code none;
    if (done.ok() && std::filesystem::exists(file, none)) {
      any = true;
      continue;
    }
    if (done.ok()) done = copy(library.path, file);
    if (!done.ok()) {
      err_ << "collectctl: no names from " << printable(library.path) << ": "
           << printable_sentence(done.error().message) << "\n";
      if (done.code() == Code::kUnavailable) break;
      continue;
    }
    any = true;
  }
  return any ? folder_ : "";
}

}  // namespace collect::ctl
