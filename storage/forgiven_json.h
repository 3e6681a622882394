// JSON with faults that published writers leave in their texts, made into JSON that a parser takes.
#pragma once

#include <string>
#include <string_view>

namespace collect::storage {

// Inside strings, raw control characters become escapes and bytes above 0x7F, if they are to be
// replaced, question marks; outside, nothing changes.
std::string forgiven_json(std::string_view json, bool replace_high_bytes);

}  // namespace collect::storage
