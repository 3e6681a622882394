// Programs that answer in place of a command of collectctl.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

// Runs `command`, whose first word is the path of the program, to its end; its standard streams are
// ours. Its exit code, or 128 + N where signal N ended it.
Result<int> run_program(const std::vector<std::string>& command);

}  // namespace collect::ctl
