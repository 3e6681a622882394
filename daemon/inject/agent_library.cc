#include "daemon/inject/agent_library.h"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>

namespace collect::inject {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAgentLibrary = "libcollect_agent.so";
#if defined(__x86_64__)
constexpr const char* kMultiarch = "x86_64-linux-gnu";
#elif defined(__aarch64__)
constexpr const char* kMultiarch = "aarch64-linux-gnu";
#else
constexpr const char* kMultiarch = "multiarch";
#endif

bool is_file(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error);
}

std::string resolved(const std::string& path) {
  std::error_code error;
  const auto found = fs::canonical(path, error);
  return error ? path : found.string();
}

}  // namespace

std::string own_directory() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path().string();
}

std::vector<std::string> agent_library_candidates(const std::string& own_directory) {
  const std::string lib = own_directory + "/../lib/";
  return {lib + kAgentLibrary, fmt::format("{}{}/{}", lib, kMultiarch, kAgentLibrary)};
}

Result<std::string> file_of_variable(const char* variable, const char* path) {
  if (is_file(path)) return resolved(path);
  return Error{Code::kNotFound,
               fmt::format("{} names {}, which is no file; correct or unset it", variable, path)};
}

Result<std::string> find_agent_library() {
  if (const char* path = std::getenv("COLLECT_AGENT_LIBRARY")) {
    return file_of_variable("COLLECT_AGENT_LIBRARY", path);
  }
  const std::vector<std::string> candidates = agent_library_candidates(own_directory());
  for (const std::string& candidate : candidates) {
    if (is_file(candidate)) return resolved(candidate);
  }
  return Error{
      Code::kNotFound,
      fmt::format("there is no {}; build or install the agent, or set COLLECT_AGENT_LIBRARY",
                  candidates[0])};
}

}  // namespace collect::inject
