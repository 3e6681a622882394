// What a run leaves behind for the commands that come after it.
#pragma once

#include <ostream>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ctl/control/connection/control_target.h"

namespace collect::ctl {

// The session with the most events is this user's newest recording from now on. Where none has any,
// the recording before stays it. That it cannot be noted is a line on `err`, and no failure of the
// run.
void note_newest_session(const std::vector<control::v1::Session>& sessions,
                         const ControlTarget& control, std::ostream& err);

}  // namespace collect::ctl
