// Files with what a client shows to a collector.
#pragma once

#include <string>

#include "formats/core/result.h"

namespace collect::ctl {

// Certificates and keys, as they are. Errors begin with `option` and never say what is in the file.
Result<std::string> read_pem(const char* option, const std::string& path);

// The token in a file, without its line end. kInvalidArgument: there is none that may be one.
// Errors as above.
Result<std::string> read_token(const char* option, const std::string& path);

}  // namespace collect::ctl
