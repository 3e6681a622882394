// A directory below TMPDIR for what a command makes on its way.
#pragma once

#include <string>

#include "formats/core/result.h"
#include "storage/leftovers.h"

namespace collect::ctl {

// "<TMPDIR>/collectctl_<purpose>_XXXXXX", removed with the result, and by signals that end the
// program.
Result<storage::Leftover> make_scratch(const std::string& purpose);

}  // namespace collect::ctl
