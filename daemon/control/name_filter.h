// What `filter` means in ListAgents, ListSessions, ListDevices and their watches.
#pragma once

#include <string_view>

#include "proto/control/v1/control.pb.h"

namespace collect::control {

// True when `filter` is empty or equals the process name, the pid, the device id, the tag, or the
// name with or without its prefix.
bool matches(const v1::Agent& agent, std::string_view filter);
bool matches(const v1::Session& session, std::string_view filter);
// Serial, model, via, or the name with or without its prefix.
bool matches(const v1::Device& device, std::string_view filter);

}  // namespace collect::control
