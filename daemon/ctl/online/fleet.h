// collectctl collectors, and what all collectors of a fleet have together: agents, sessions and
// devices with --fleet. Who they are says the collector at --control; what each has, it says
// itself.
#pragma once

#include <string>

#include "daemon/ctl/online/commands.h"

namespace collect::ctl {

inline constexpr size_t kAskedAtOnce = 16;  // collectors

// Of a device, who has it; empty: all collectors.
int list_collectors(const Online& online, const std::string& device);

// A table, or with json one object with all collectors. Those that are there and do not answer are
// named, and kExitFailed is returned; those that are away are named.
int list_fleet_agents(const Online& online, const std::string& filter);
int list_fleet_sessions(const Online& online, const std::string& filter);
int list_fleet_devices(const Online& online, const std::string& filter);

}  // namespace collect::ctl
