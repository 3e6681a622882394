// Protobuf messages as JSON for programs: one line, zero values included, so that a script finds
// every field. 64-bit numbers are strings, as protobuf's JSON mapping wants.
#pragma once

#include <string>

#include <google/protobuf/message.h>

#include "formats/core/result.h"

namespace collect::ctl {

std::string to_json(const google::protobuf::Message& message);
// kInvalidArgument says where it is none, or what the message does not have.
Status from_json(const std::string& text, google::protobuf::Message& message);

}  // namespace collect::ctl
