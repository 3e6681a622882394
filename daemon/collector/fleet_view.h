// What of the collector the fleet is told: the devices that are there, and the processes that are
// connected.
#pragma once

#include "daemon/attach/attach.h"
#include "daemon/collector/registry.h"
#include "daemon/fleet/holding.h"

namespace collect::daemon {

// Copies under short locks; any thread.
fleet::Holdings holdings_of(const Registry& registry, const attach::Attach& devices);

}  // namespace collect::daemon
