// `report --graph FUNCTION`: on which paths a function was called, and what was called from it.
#pragma once

#include <iosfwd>

#include "daemon/ctl/report_profile.h"
#include "daemon/ctl/text_out.h"

namespace collect::ctl {

// 0: printed; 1: no function that was called matches; 2: the word makes no sense. The others are
// said on `err`.
int print_report_graph(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       std::ostream& err);

}  // namespace collect::ctl
