// Patterns as people write them: * is any text, ? any one byte, everything else itself, because
// names of C++ functions contain brackets.
#pragma once

#include <string_view>

namespace collect {

// Takes at most the product of the sizes in time, with any pattern.
bool matches_glob(std::string_view pattern, std::string_view text);

}  // namespace collect
