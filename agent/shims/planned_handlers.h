// What the trampolines of patch plans call: by use, as in formats/patch/plan_layout.h.
#pragma once

#include "agent/ring/sleds/sleds.h"

namespace collect::agent {

const SledHandler* planned_handlers();

}  // namespace collect::agent
