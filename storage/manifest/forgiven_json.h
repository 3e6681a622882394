// JSON with faults that published writers leave in their texts, made into JSON that a parser takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace collect::storage {

// Inside strings, raw control characters become escapes and bytes above 0x7F, if they are to be
// replaced, question marks; outside, nothing changes.
std::string forgiven_json(std::string_view json, bool replace_high_bytes);

// A sentence about the first byte that JSON has no place for: a control character, or what is not
// UTF-8. Behind a NUL parsers read nothing.
std::optional<std::string> fault_of_json_text(std::string_view text);

}  // namespace collect::storage
