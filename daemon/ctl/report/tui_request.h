// What collectctl asks collect-tui for, which it becomes for `report --tui`: words of a command
// line.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/report/report.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr char kTuiProgram[] = "collect-tui";

// Path, order, wall times, threads, window and colour.
std::vector<std::string> tui_arguments(const ReportOptions& options);
// kInvalidArgument: a word that tui_arguments() does not make.
Result<ReportOptions> parse_tui_arguments(const std::vector<std::string>& arguments);

}  // namespace collect::ctl
