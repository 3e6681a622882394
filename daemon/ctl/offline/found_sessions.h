// Which sessions a path means that somebody gave to a command for several.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

// The session itself, or all below the directory, newest first; absolute, without links in them.
// kNotFound: no session there; kLimit: too many directories to look into.
Result<std::vector<std::string>> sessions_at(const std::string& path);

}  // namespace collect::ctl
