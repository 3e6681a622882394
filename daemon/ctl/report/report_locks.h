// `report --locks`: which locks threads waited for, in which functions, and who had them.
#pragma once

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {

// Waits that began in the window. 0: printed; none is a reason that is printed, too.
int print_report_locks(TextOut& out, const ReportedCapture& capture, const ReportOptions& options);

}  // namespace collect::ctl
