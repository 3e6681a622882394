#include "daemon/ctl/convert/debuginfod.h"

#include <fmt/core.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "daemon/symbolize/child_program.h"
#include "formats/core/text/hex.h"

namespace collect::ctl {
namespace {

// The client gives a server up that sends nothing for 90 s (DEBUGINFOD_TIMEOUT); a file may be
// large.
constexpr std::chrono::minutes kMostTimeOfAFile{30};
constexpr uint64_t kMostPathBytes = 8192;
// Limit of one file: those of the largest programs have some gigabytes. The client asks servers not
// to send more; a server that does not say how much comes is held to it by the system.
constexpr uint64_t kMostFileBytes = 8ull << 30;
constexpr char kMostFileVariable[] = "DEBUGINFOD_MAXSIZE";

uint64_t most_file_bytes() {
  const char* const wanted = std::getenv(kMostFileVariable);
  const uint64_t bytes = wanted == nullptr ? 0 : std::strtoull(wanted, nullptr, 10);
  return bytes == 0 ? kMostFileBytes : std::min(bytes, kMostFileBytes);
}

bool names_a_server() {
  const char* const servers = std::getenv("DEBUGINFOD_URLS");
  return servers != nullptr && servers[strspn(servers, " ")] != '\0';
}

// With it the client gets its servers, its cache and its proxy.
std::vector<std::string> own_environment() {
  std::vector<std::string> all;
  const std::string most = std::string(kMostFileVariable) + "=";
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with(most)) all.emplace_back(*variable);
  }
  all.push_back(most + std::to_string(most_file_bytes()));
  return all;
}

// Modules with functions that have no name, or of which no function has a line.
std::vector<storage::ModuleInfo> modules_in_need(const storage::Manifest& manifest) {
  std::set<uint32_t> with_lines;
  for (const storage::Symbol& symbol : manifest.symbols) {
    if (!symbol.file.empty()) with_lines.insert(static_cast<uint32_t>(symbol.function_id >> 32));
  }
  std::set<uint32_t> in_need;
  for (const storage::ModuleSymbols& module : manifest.module_symbols) {
    if (module.functions == 0) continue;
    if (module.named < module.functions || !with_lines.contains(module.module_id)) {
      in_need.insert(module.module_id);
    }
  }
  std::vector<storage::ModuleInfo> modules;
  for (const storage::ModuleInfo& module : manifest.modules) {
    if (in_need.contains(module.module_id) && !module.build_id.empty()) modules.push_back(module);
  }
  return modules;
}

// The path of the file in the client's cache, as it prints it; empty: no server has one.
Result<std::string> fetch(const std::string& client, const std::string& build_id) {
  std::string path;
  const auto ending = symbolize::run_child(
      {client, {"debuginfo", build_id}, own_environment()}, {},
      {kMostTimeOfAFile, kMostPathBytes, nullptr, most_file_bytes()}, [&path](Bytes bytes) {
        path.append(bytes.begin(), bytes.end());
        return Status();
      });
  if (!ending.ok()) return ending.error();
  if (ending->exit_code != 0) return std::string();
  while (path.ends_with('\n')) path.pop_back();
  return path;
}

}  // namespace

Result<std::vector<std::string>> fetch_debug_files(
    const std::string& client, const storage::Manifest& manifest,
    const std::function<void(const std::string&)>& say) {
  if (!names_a_server()) {
    return Error{Code::kUnavailable,
                 "--debuginfod: DEBUGINFOD_URLS names no server (for Debian's programs: "
                 "export DEBUGINFOD_URLS=https://debuginfod.debian.net)"};
  }
  // Beyond kMostFileBytes the client gets an error, and removes what it has begun.
  std::signal(SIGXFSZ, SIG_IGN);
  std::set<std::string> folders;
  std::set<std::string> asked;
  for (const storage::ModuleInfo& module : modules_in_need(manifest)) {
    const std::string build_id = hex_bytes(module.build_id);
    if (!asked.insert(build_id).second) continue;
    say(fmt::format("debuginfod: {} (build id {}) ...", module.path, build_id));
    const auto path = fetch(client, build_id);
    if (!path.ok()) return path.error();
    if (path->empty()) {
      say("debuginfod: no server has it, or none answered");
      continue;
    }
    // CACHE/BUILD_ID/debuginfo
    folders.insert(std::filesystem::path(*path).parent_path().parent_path().string());
  }
  return std::vector<std::string>(folders.begin(), folders.end());
}

}  // namespace collect::ctl
