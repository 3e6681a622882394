#include "daemon/patch/module_plans.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string_view>

#include "formats/core/text/glob.h"
#include "formats/patch/plan_view.h"

namespace collect::patch {
namespace {

namespace fs = std::filesystem;

// The agent runs on these itself, and unwinders look at frames as they are.
constexpr std::string_view kNeverTraced[] = {"libc.so*",       "ld-linux*",  "ld-musl*",
                                             "libpthread.so*", "libdl.so*",  "librt.so*",
                                             "libgcc_s.so*",   "libunwind*", "libcollect_agent*"};

std::string cache_directory() {
  const char* const cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/collectord/plans";
  const char* const home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/collectord/plans" : "";
}

bool matches(const std::vector<std::string>& patterns, const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    return matches_glob(pattern, path) || matches_glob(pattern, name);
  });
}

uint64_t recorded_functions(const std::vector<uint8_t>& plan) {
  PlanView view;
  uint64_t count = 0;
  if (view.parse(plan) != nullptr) return count;
  for (uint32_t i = 0; i < view.header().function_count; ++i) {
    if (view.function(i).refusal == static_cast<uint32_t>(Refusal::kNone)) ++count;
  }
  return count;
}

Error with_path(const std::string& path, const Error& error) {
  return {error.code, fmt::format("{} cannot be traced with --dynamic: {}", path, error.message)};
}

Result<uint64_t> add_plan(const std::string& path, const PlanFolder& folder) {
  if (is_never_traced(path)) return Error{Code::kUnsupported, kAgentNeedsIt};
  const auto plan = plan_for(path, cache_directory());
  if (!plan.ok()) return plan.error();
  COLLECT_TRY(folder.add(*plan, path));
  return recorded_functions(*plan);
}

// Patterns that are paths of files: of programs that the program starts, for example.
void add_named_files(const std::vector<std::string>& patterns, std::vector<std::string>& modules) {
  std::error_code ignored;
  for (const std::string& pattern : patterns) {
    if (pattern.find('/') == pattern.npos || !fs::is_regular_file(pattern, ignored)) continue;
    std::string path = fs::absolute(pattern, ignored).lexically_normal().string();
    if (std::find(modules.begin(), modules.end(), path) == modules.end()) {
      modules.push_back(std::move(path));
    }
  }
}

// Chooses among modules that are loaded, the program first.
Result<std::vector<std::string>> chosen_modules(std::vector<std::string> modules,
                                                const std::vector<std::string>& patterns) {
  const std::string started = modules.front();
  const bool has_program =
      std::find(patterns.begin(), patterns.end(), kProgramItself) != patterns.end();
  std::erase_if(modules, [&](const std::string& path) {
    if (path == started) return !has_program && !matches(patterns, path);
    return !matches(patterns, path) || is_never_traced(path);
  });
  add_named_files(patterns, modules);
  if (!modules.empty()) return modules;
  return Error{
      Code::kNotFound,
      fmt::format(
          "--dynamic: the pattern matches neither {}, nor a library of it, nor another file",
          started)};
}

}  // namespace

bool is_never_traced(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  return std::any_of(std::begin(kNeverTraced), std::end(kNeverTraced),
                     [&](std::string_view pattern) { return matches_glob(pattern, name); });
}

Result<ModulePlans> plans_of_modules(const std::vector<std::string>& loaded,
                                     const std::vector<std::string>& patterns) {
  const auto modules = chosen_modules(loaded, patterns);
  if (!modules.ok()) return modules.error();
  auto folder = PlanFolder::create();
  if (!folder.ok()) return folder.error();
  ModulePlans plans{std::move(*folder), 0, {}, {}, {}};
  if (patterns == std::vector<std::string>{kProgramItself}) {
    std::copy_if(loaded.begin() + 1, loaded.end(), std::back_inserter(plans.not_asked_for),
                 [](const std::string& path) { return !is_never_traced(path); });
  }
  for (const std::string& path : *modules) {
    const auto functions = add_plan(path, plans.folder);
    if (functions.ok()) {
      plans.functions += *functions;
      plans.modules.push_back(path);
      continue;
    }
    if (modules->size() == 1) return with_path(path, functions.error());
    plans.left_out.push_back(with_path(path, functions.error()).message);
  }
  if (plans.modules.empty()) return Error{Code::kUnsupported, plans.left_out.front()};
  return plans;
}

}  // namespace collect::patch
