// The settings of an agent on a phone: COLLECT_* variables, "NAME=value" each.
#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/record/program/run_environment.h"
#include "formats/core/result.h"

namespace collect::ctl {

// The variables for `settings`, with nothing from the environment of this program. The agent
// listens for the collector, keeps in `spool` what is recorded before one comes, and does not let
// the app wait for room in the ring unless `settings` says so.
Result<std::vector<std::string>> phone_variables(const AgentSettings& settings,
                                                 const std::string& spool);

}  // namespace collect::ctl
