#include "daemon/ctl/offline/found_sessions.h"

#include <filesystem>

#include "storage/rooted_directory.h"
#include "storage/session_layout.h"
#include "storage/trace/session_search.h"

namespace collect::ctl {

Result<std::vector<std::string>> sessions_at(const std::string& path) {
  std::error_code error;
  const std::filesystem::path place = std::filesystem::canonical(path, error);
  if (error) return errno_error(error.value(), path);
  if (std::filesystem::exists(place / storage::kManifestFile, error)) {
    return std::vector{place.string()};
  }
  const auto root = storage::RootedDirectory::open(place.string());
  if (!root.ok()) return root.error();
  bool all = true;
  std::vector<std::string> sessions;
  for (const trace::FoundSession& found : trace::find_sessions(*root, &all)) {
    sessions.push_back((place / found.below).string());
  }
  if (!all) return Error{Code::kLimit, path + ": too many directories; name the sessions"};
  if (sessions.empty()) return Error{Code::kNotFound, path + ": no session, and none below it"};
  return sessions;
}

}  // namespace collect::ctl
