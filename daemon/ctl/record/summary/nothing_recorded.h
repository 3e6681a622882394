// Why a run has nothing to show, as far as it can be known.
#pragma once

#include <string>

#include "daemon/ctl/record/summary/run_summary.h"

namespace collect::ctl {

// "Segmentation fault", where the exit code is a shell's word for that signal; else empty.
std::string ended_by(int exit_code);

// Lines of the summary: the cause and what to do, for a run without any event.
std::string nothing_recorded(const RunOutcome& outcome);

}  // namespace collect::ctl
