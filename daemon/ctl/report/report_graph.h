// `report --graph FUNCTION`: on which paths a function was called, and what was called from it.
#pragma once

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {

// 0: printed; 1: no function that was called matches; 2: the word makes no sense. The other two
// are reported by `answer`.
int print_report_graph(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       const Answer& answer);

}  // namespace collect::ctl
