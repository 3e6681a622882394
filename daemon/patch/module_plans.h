// Plans for the modules of a program that was not prepared: which of them are traced.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/patch/plan_store.h"
#include "formats/core/result.h"

namespace collect::patch {

// Is for the program itself among the patterns: --dynamic without a pattern, as CLI11 has a
// flag without a value.
inline constexpr char kProgramItself[] = "true";

// The agent runs on some libraries itself, such as the C library, and unwinders look at frames as
// they are: these are left out, with any patterns.
bool is_never_traced(const std::string& path);
inline constexpr char kAgentNeedsIt[] = "the agent itself needs it";

struct ModulePlans {
  PlanFolder folder;
  uint64_t functions = 0;  // that can be recorded
  std::vector<std::string> modules;
  // Modules that the pattern names and that can't be traced, with the reason.
  std::vector<std::string> left_out;
  // For a program that is traced alone: libraries of it that could be traced, too.
  std::vector<std::string> not_asked_for;
};

// Plans for those of `loaded`, the program first, whose path or file name matches one of
// `patterns`, and for files that one of them names by path. kUnsupported and others: nothing can be
// traced, and why.
Result<ModulePlans> plans_of_modules(const std::vector<std::string>& loaded,
                                     const std::vector<std::string>& patterns);

}  // namespace collect::patch
