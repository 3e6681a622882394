#include "daemon/ctl/convert/own_session.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

namespace collect::ctl {

Result<OwnSession> own_session(const std::string& directory, const std::string& doing) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(directory, error);
  if (error) return errno_error(error.value(), directory);
  auto session_path = storage::parse_session_directory(absolute.string());
  if (!session_path) {
    return Error{Code::kUnsupported,
                 fmt::format("{}: not named session_…/pid_…, so it may be another program's and is "
                             "not changed; give it such a name to {} it",
                             directory, doing)};
  }
  const std::string root = session_path->root();
  auto opened = storage::RootedDirectory::open(root);
  if (!opened.ok()) return opened.error();
  OwnSession own{std::move(*session_path), std::make_unique<storage::PosixFs>(std::move(*opened)),
                 nullptr};
  auto lock = storage::RootLock::take(*own.files, root);
  if (!lock.ok()) return lock.error();
  own.lock = std::move(*lock);
  return own;
}

}  // namespace collect::ctl
