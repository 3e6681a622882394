// Whether a pattern that somebody wrote means a function of this name.
#pragma once

#include <string_view>

namespace collect::symbolize {

// The pattern means the linkage name, the name as C++ writes it, or the latter without its
// arguments. * stands for any text.
bool means_function(std::string_view pattern, std::string_view linkage_name,
                    std::string_view demangled);

}  // namespace collect::symbolize
