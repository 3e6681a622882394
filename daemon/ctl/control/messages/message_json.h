// Messages of the control plane in the dialect of json.h, and back: fields keep their names of the
// .proto files, enums are words, timestamps RFC 3339 in UTC, durations seconds under NAME_s. Of
// fields that can be absent, and of texts, those that are empty are left out; numbers, switches and
// lists are always there.
#pragma once

#include <google/protobuf/message.h>
#include <string>

#include "daemon/ctl/terminal/json.h"
#include "formats/core/result.h"

namespace collect::ctl {

// The word of an enum's value, of one word or with '_': "recording", "no_agent".
std::string enum_word(const google::protobuf::EnumValueDescriptor& value);

// The message as an object, without a version.
Json json_of(const google::protobuf::Message& message);
// The object as a whole line, which begins with the version.
std::string message_line(const google::protobuf::Message& message);

// kInvalidArgument: not JSON, of another version, or not what the message holds; the sentence says
// where. Takes what message_line() gives.
Status from_json(const std::string& text, google::protobuf::Message& message);

}  // namespace collect::ctl
