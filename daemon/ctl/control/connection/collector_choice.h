// Which collector a command means when none is named. CTL.md "What runs, what is newest".
#pragma once

#include <ostream>

#include "daemon/ctl/control/connection/control_target.h"

namespace collect::ctl {

// Fills in an address that is not given: COLLECT_CONTROL, else the collector of this user that
// runs, of several the one that records, which is printed to `err`; else default_control_address().
// Where none of several is to be preferred, `unresolved` names them.
void choose_collector(ControlTarget& target, std::ostream& err);

}  // namespace collect::ctl
