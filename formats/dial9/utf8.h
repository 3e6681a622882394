// Text of a stream, which may be anything, as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace collect::dial9 {

// Appends the text; each maximal part of an invalid sequence becomes one U+FFFD.
void append_utf8(std::string_view text, std::string& out);

}  // namespace collect::dial9
