// The body of a POST: one JSON object.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::web {

// The word of `key`. kInvalidArgument: there is none.
Result<std::string> word_in(const std::string& body, const char* key);
// The words of a list; none: it is not there. kInvalidArgument: it is something else.
Result<std::vector<std::string>> words_in(const std::string& body, const char* key);

}  // namespace collect::web
