#include "daemon/ctl/record/program/program_paths.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace collect::ctl {
namespace {

bool is_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace

Result<std::string> find_collectord() {
  if (const char* path = std::getenv("COLLECT_COLLECTORD")) {
    return inject::file_of_variable("COLLECT_COLLECTORD", path);
  }
  const std::string path = own_directory() + "/collectord";
  if (is_file(path)) return inject::file_of_variable("", path.c_str());
  return Error{Code::kNotFound,
               fmt::format("there is no {}; build or install it, or set COLLECT_COLLECTORD", path)};
}

Result<std::string> find_program(const std::string& name) {
  const auto check = [](const std::string& path) -> Status {
    if (!is_file(path)) return Error{Code::kNotFound, path};
    if (::access(path.c_str(), X_OK) != 0) return Error{Code::kPermission, path};
    return {};
  };
  if (name.find('/') != std::string::npos) {
    if (Status status = check(name); !status.ok()) {
      return Error{status.code(),
                   name + (status.code() == Code::kPermission ? ": cannot be executed"
                                                              : ": no such program")};
    }
    return name;
  }
  const char* variable = std::getenv("PATH");
  const std::string path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  bool denied = false;
  for (size_t at = 0; !name.empty() && at <= path.size();) {
    const size_t end = std::min(path.find(':', at), path.size());
    const std::string directory = end == at ? "." : path.substr(at, end - at);
    const std::string candidate = fmt::format("{}/{}", directory, name);
    const Status status = check(candidate);
    if (status.ok()) return candidate;
    denied = denied || status.code() == Code::kPermission;
    at = end + 1;
  }
  if (denied) return Error{Code::kPermission, name + ": cannot be executed"};
  return Error{Code::kNotFound, name + ": no such program in PATH"};
}

}  // namespace collect::ctl
