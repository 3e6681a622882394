// Plans for `collectctl run --dynamic`: which modules of a program that was not prepared are
// traced.
#pragma once

#include <string>
#include <vector>

#include "daemon/patch/plan_store.h"
#include "formats/core/result.h"

namespace collect::ctl {

// --dynamic without a pattern, as CLI11 has a flag without a value.
inline constexpr char kProgramItself[] = "true";

// The agent runs on some libraries itself, such as the C library, and unwinders look at frames as
// they are: these are left out, whatever the patterns are.
bool is_never_traced(const std::string& path);
inline constexpr char kAgentNeedsIt[] = "the agent itself needs it";

struct DynamicPlans {
  patch::PlanFolder folder;
  uint64_t functions = 0;  // that can be recorded
  std::vector<std::string> modules;
  // Of modules that the pattern names and that can't be traced, with the reason.
  std::vector<std::string> left_out;
};

// Plans for `program` (of a script: for its interpreter), or for those of it and of its libraries
// whose path or file name matches one of `patterns`, and for files that one of them names by path.
// `environment` is the program's: it says where
// libraries are. kUnsupported and others: nothing can be traced, and why.
Result<DynamicPlans> make_dynamic_plans(const std::string& program,
                                        const std::vector<std::string>& patterns,
                                        const std::vector<std::string>& environment);

// The same of modules that are loaded, the program first.
Result<DynamicPlans> plans_of_modules(const std::vector<std::string>& loaded,
                                      const std::vector<std::string>& patterns);

}  // namespace collect::ctl
