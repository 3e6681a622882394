// Plans for `collectctl run --dynamic`: of a program that has not been started yet.
#pragma once

#include <string>
#include <vector>

#include "daemon/patch/module_plans.h"
#include "formats/core/result.h"

namespace collect::ctl {

// Plans for `program` (of a script: for its interpreter), or for those of it and of its libraries
// whose path or file name matches one of `patterns`, and for files that one of them names by path.
// `environment` is the program's: it says where libraries are. Errors as of plans_of_modules().
Result<patch::ModulePlans> make_dynamic_plans(const std::string& program,
                                              const std::vector<std::string>& patterns,
                                              const std::vector<std::string>& environment);

}  // namespace collect::ctl
