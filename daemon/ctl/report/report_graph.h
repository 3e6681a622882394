// `report --graph FUNCTION`: on which paths a function was called, and what was called from it.
// `report --waits`: on which paths threads were off the processor.
#pragma once

#include <functional>
#include <memory>

#include "daemon/ctl/report/report_profile.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/ctl/terminal/text_out.h"
#include "formats/calls/call_tree.h"

namespace collect::ctl {

// The call tree of the capture, of all its threads together.
std::unique_ptr<ReportWorker<calls::CallTree>> read_call_tree(
    const ReportedCapture& capture, const std::function<void(size_t, size_t)>& progress);

// 0: printed; 1: no function that was called matches; 2: the word makes no sense. The other two
// are reported by `answer`.
int print_report_graph(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       const Answer& answer);

// 0: printed; 1: when threads were off the processor is not known.
int print_report_waits(TextOut& out, const ReportedCapture& capture, const ReportOptions& options,
                       const Answer& answer);

}  // namespace collect::ctl
