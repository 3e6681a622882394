#include "daemon/ctl/run/program_paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace collect::ctl {
namespace {

constexpr const char* kAgentLibrary = "libcollect_agent.so";
#if defined(__x86_64__)
constexpr const char* kMultiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kMultiarch = "aarch64-linux-gnu";
#else
constexpr const char* kMultiarch = "multiarch";
#endif

bool is_file(const std::string& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

std::string resolved(const std::string& path) {
  std::error_code error;
  const auto found = std::filesystem::canonical(path, error);
  return error ? path : found.string();
}

Result<std::string> from_variable(const char* variable, const char* path) {
  if (is_file(path)) return resolved(path);
  return Error{Code::kNotFound, std::string(variable) + " names " + path +
                                    ", which is no file; correct or unset it"};
}

}  // namespace

std::string own_directory() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::vector<std::string> agent_library_candidates(const std::string& own_directory) {
  const std::string lib = own_directory + "/../lib/";
  return {lib + kAgentLibrary, lib + kMultiarch + "/" + kAgentLibrary};
}

Result<std::string> find_agent_library() {
  if (const char* path = std::getenv("COLLECT_AGENT_LIBRARY")) {
    return from_variable("COLLECT_AGENT_LIBRARY", path);
  }
  const std::vector<std::string> candidates = agent_library_candidates(own_directory());
  for (const std::string& candidate : candidates) {
    if (is_file(candidate)) return resolved(candidate);
  }
  return Error{Code::kNotFound, "there is no " + candidates[0] +
                                    "; build or install the agent, or set COLLECT_AGENT_LIBRARY"};
}

Result<std::string> find_collectord() {
  if (const char* path = std::getenv("COLLECT_COLLECTORD")) {
    return from_variable("COLLECT_COLLECTORD", path);
  }
  const std::string path = own_directory() + "/collectord";
  if (is_file(path)) return resolved(path);
  return Error{Code::kNotFound,
               "there is no " + path + "; build or install it, or set COLLECT_COLLECTORD"};
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
    const std::string candidate = directory + "/" + name;
    const Status status = check(candidate);
    if (status.ok()) return candidate;
    denied = denied || status.code() == Code::kPermission;
    at = end + 1;
  }
  if (denied) return Error{Code::kPermission, name + ": cannot be executed"};
  return Error{Code::kNotFound, name + ": no such program in PATH"};
}

}  // namespace collect::ctl
