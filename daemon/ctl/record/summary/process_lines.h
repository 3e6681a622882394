// The processes of a run within its summary.
#pragma once

#include <string>

#include "daemon/ctl/record/summary/run_summary.h"

namespace collect::ctl {

std::string summary_line(const char* label, const std::string& text);

// Processes that no session is of.
std::string missing_lines(const RunOutcome& outcome);
// What ran besides, where that may be the answer to why so little was recorded.
std::string quiet_lines(const RunOutcome& outcome);

}  // namespace collect::ctl
