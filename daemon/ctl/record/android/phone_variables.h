// What an agent on a phone is told: COLLECT_* variables, "NAME=value" each.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/record/program/run_environment.h"
#include "formats/core/result.h"

namespace collect::ctl {

// Of `settings`, nothing from the environment of this program. It listens for the collector, keeps
// in `spool` what is recorded before one comes, and does not hold the app up where the ring is full
// unless `settings` says so.
Result<std::vector<std::string>> phone_variables(const AgentSettings& settings,
                                                 const std::string& spool);

}  // namespace collect::ctl
