// A directory for what a command needs for a while.
#pragma once

#include <fmt/core.h>
#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "storage/fs/leftovers.h"

namespace collect::ctl {

// "collectctl_NAME_…" below TMPDIR; it goes with the object, also when a signal ends the program.
inline Result<storage::Leftover> make_scratch_directory(const std::string& name) {
  return storage::Leftover::made_by([&name]() -> Result<std::string> {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) return Error{Code::kIo, "TMPDIR: " + error.message()};
    std::string path = (parent / fmt::format("collectctl_{}_XXXXXX", name)).string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
}

}  // namespace collect::ctl
