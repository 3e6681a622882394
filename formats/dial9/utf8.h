// UTF-8 as dial9 needs it: names must be valid, text that is not is shown with U+FFFD.
#pragma once

#include <string>
#include <string_view>

namespace collect::dial9 {

// Unicode 3.9, table 3-7: no surrogates, no over-long forms, nothing above U+10FFFF.
bool is_utf8(std::string_view text);

// Appends the text; each maximal part of an invalid sequence becomes one U+FFFD.
void append_utf8(std::string_view text, std::string& out);

}  // namespace collect::dial9
