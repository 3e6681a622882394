#include "storage/convert/whole_session.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <random>
#include <system_error>

#include "storage/fs/leftovers.h"

namespace collect::convert {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxNames = 10'000;  // session_…_N

// `name` below `root`, or `name`_2 and so on.
Result<std::string> move_session(const fs::path& session, const fs::path& root) {
  const std::string name = session.filename().string();
  for (int i = 1; i <= kMaxNames; ++i) {
    const fs::path to = root / (i == 1 ? name : fmt::format("{}_{}", name, i));
    std::error_code ignored;
    // Others may be recording into this root: an empty directory may be about to be filled.
    if (fs::exists(fs::symlink_status(to, ignored))) continue;
    if (std::rename(session.c_str(), to.c_str()) == 0) return to.string();
    if (errno != EEXIST && errno != ENOTEMPTY) return errno_error(errno, to.string());
  }
  return Error{Code::kAlreadyExists, (root / name).string() + ": every name is taken"};
}

}  // namespace

Result<std::string> make_whole_session(
    const std::string& root, const std::function<Result<std::string>(const std::string&)>& make) {
  std::error_code error;
  storage::Leftover made_root;
  if (!fs::exists(root, error)) {
    // Before it is made, so that a signal in between leaves nothing.
    made_root = storage::Leftover(root, storage::Leftover::kIfEmpty);
    fs::create_directories(root, error);
    if (error) return errno_error(error.value(), root);
  }
  const std::string path =
      (fs::path(root) / fmt::format("converting-{}", std::random_device()())).string();
  const auto contents = storage::Leftover::made_by([&]() -> Result<std::string> {
    if (::mkdir(path.c_str(), 0700) != 0) return errno_error(errno, path);
    return path;
  });
  if (!contents.ok()) return contents.error();
  const auto made = make(path);
  if (!made.ok()) return made.error();
  const fs::path session = fs::path(*made).lexically_normal();
  auto moved = move_session(session.parent_path(), root);
  if (!moved.ok()) return moved.error();
  made_root.keep();
  return fmt::format("{}/{}", *moved, session.filename().string());
}

}  // namespace collect::convert
