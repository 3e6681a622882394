#include "daemon/ctl/offline/scratch.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace collect::ctl {

Result<storage::Leftover> make_scratch(const std::string& purpose) {
  return storage::Leftover::made_by([&purpose]() -> Result<std::string> {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    if (error) return Error{Code::kIo, "TMPDIR: " + error.message()};
    std::string path = (parent / ("collectctl_" + purpose + "_XXXXXX")).string();
    if (::mkdtemp(path.data()) == nullptr) return errno_error(errno, path);
    return path;
  });
}

}  // namespace collect::ctl
