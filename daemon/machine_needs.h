// What a collector at work takes of the machine.
#pragma once

#include "daemon/machine/machine_limits.h"

namespace collect::daemon {

MachineNeeds machine_needs();

}  // namespace collect::daemon
