#include "daemon/ctl/record/run/dynamic_plans.h"

#include <fmt/core.h>

#include <filesystem>

#include "daemon/ctl/record/program/module_list.h"
#include "daemon/ctl/record/program/preload_check.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<patch::ModulePlans> make_dynamic_plans(const std::string& program,
                                              const std::vector<std::string>& patterns,
                                              const std::vector<std::string>& environment) {
  // The file itself: the planner works in another directory, and $ORIGIN is where the file is, not
  // the link that names it.
  std::error_code error;
  const fs::path found = started_program(program);
  const fs::path real = fs::canonical(found, error);
  const std::string started = (error ? fs::absolute(found, error) : real).string();
  if (const std::string why = why_no_preload(started); !why.empty()) {
    return Error{Code::kUnsupported,
                 fmt::format("{} cannot be traced with --dynamic: it {}", started, why)};
  }
  auto loaded = list_modules(started, environment);
  if (!loaded.ok()) {
    // Its own code is in its own file.
    if (patterns != std::vector<std::string>{patch::kProgramItself}) return loaded.error();
    loaded = std::vector<std::string>{started};
  }
  return patch::plans_of_modules(*loaded, patterns);
}

}  // namespace collect::ctl
