// Protobuf messages as JSON for programs: one line, zero values included, so that a script finds
// every field. 64-bit numbers are strings, as protobuf's JSON mapping wants.
#pragma once

#include <string>

#include <google/protobuf/message.h>

namespace collect::ctl {

std::string to_json(const google::protobuf::Message& message);

}  // namespace collect::ctl
