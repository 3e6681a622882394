#include "daemon/ctl/record/processes/other_user.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "daemon/principal/secret.h"
#include "storage/fs/rooted_directory.h"

namespace collect::ctl {
namespace {

Status write_for(uid_t user, const std::string& path, const std::string& text) {
  const Descriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400));
  if (file.get() < 0) return errno_error(errno, path);
  if (::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::fchown(file.get(), user, static_cast<gid_t>(-1)) != 0) {
    return errno_error(errno, path);
  }
  return {};
}

}  // namespace

Result<SharedFiles> share_with(uid_t user, const patch::PlanFolder& folder) {
  COLLECT_TRY(folder.share());
  const auto token = principal::make_secret();
  if (!token.ok()) return token.error();
  SharedFiles files{folder.path() + "/collector_token", folder.path() + "/agent_token"};
  COLLECT_TRY(write_for(::geteuid(), files.collector_token, *token));
  COLLECT_TRY(write_for(user, files.agent_token, *token));
  return files;
}

}  // namespace collect::ctl
