// `report --diff`: two captures side by side, row by row of the same name.
#pragma once

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {

// Rows of one name are one: of functions that two modules have under the same name, and of threads.
// The largest change first, or by name.
void print_report_diff(TextOut& out, const ReportedCapture& before, const ReportProfile& one,
                       const ReportedCapture& after, const ReportProfile& other,
                       const ReportOptions& options);

}  // namespace collect::ctl
