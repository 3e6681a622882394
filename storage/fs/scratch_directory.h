// A directory for what is needed for a while.
#pragma once

#include <stdlib.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "storage/fs/leftovers.h"

namespace collect::storage {

// "NAME_…" below TMPDIR; it goes with the object, also when a signal ends the program.
inline Result<Leftover> make_scratch_directory(const std::string& name) {
  return Leftover::made_by([&name]() -> Result<std::string> {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) return Error{Code::kIo, "TMPDIR: " + error.message()};
    std::string path = (parent / (name + "_XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
}

}  // namespace collect::storage
