// Whether a collector or an agent, ours or another's, does what WIRE.md says. Shares no code with
// daemon/ingest and agent: what both would understand wrongly in the same way shows here.
#pragma once

#include <string>
#include <vector>

#include "proto/conformance/agents/agent_bench.h"
#include "proto/conformance/check.h"

namespace collect::conformance {

// In the order of WIRE.md's sections.
std::vector<Rule> collector_rules();
std::vector<Rule> agent_rules();

// Each reports one verdict for every rule, or for those of `settings.only`. kUnavailable: no one
// answers at the address. kInvalidArgument: it is none.
Status check_collector(const std::string& address, const Settings& settings, const Report& report);
// An error is that of `start`.
Status check_agent(const StartAgent& start, const Settings& settings, const Report& report);

}  // namespace collect::conformance
