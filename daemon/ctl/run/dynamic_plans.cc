#include "daemon/ctl/run/dynamic_plans.h"

#include <filesystem>

#include "daemon/ctl/run/module_list.h"
#include "daemon/ctl/run/preload_check.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<patch::ModulePlans> make_dynamic_plans(const std::string& program,
                                              const std::vector<std::string>& patterns,
                                              const std::vector<std::string>& environment) {
  // The planner works in another directory.
  std::error_code ignored;
  const std::string started =
      fs::absolute(started_program(program), ignored).lexically_normal().string();
  if (const std::string why = why_no_preload(started); !why.empty()) {
    return Error{Code::kUnsupported, started + " cannot be traced with --dynamic: it " + why};
  }
  if (patterns == std::vector<std::string>{patch::kProgramItself}) {
    return patch::plans_of_modules({started}, patterns);
  }
  const auto loaded = list_modules(started, environment);
  if (!loaded.ok()) return loaded.error();
  return patch::plans_of_modules(*loaded, patterns);
}

}  // namespace collect::ctl
