// `report --samples`: where threads ran, by samples: the function that was sampled, which need not
// be instrumented, and the calls that were open; in text the innermost one, in JSON all of them.
#pragma once

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"

namespace collect::ctl {

// 0: printed; 1: there are no samples, which is reported by `answer`.
int print_report_samples(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                         const Answer& answer);

}  // namespace collect::ctl
