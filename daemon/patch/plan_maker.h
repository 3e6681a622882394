// Plans of files, made by collect-planner: a program of its own, which can do nothing but compute
// when it reads a file. PATCH.md.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::patch {

// The plan of the file at `path`, checked. Its error says of the file what make_plan() says
// (planner/planner.h), or that it can't be read, or that the planner failed.
Result<std::vector<uint8_t>> plan_of_file(const std::string& path);

// Null, or what is wrong with these bytes as a plan: of PlanView, and the checksum.
const char* check_plan(const std::vector<uint8_t>& bytes);

}  // namespace collect::patch
