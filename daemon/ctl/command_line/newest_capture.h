// What the commands for files take where no path is given. CTL.md "What runs, what is newest".
#pragma once

#include <ostream>
#include <string>

#include "formats/core/result.h"

namespace collect::ctl {

// The recording that this user made last, as a path; `err` gets a line that names it. kNotFound:
// there is none. kPermission: it is there and cannot be read from here; the message says how to get
// it.
Result<std::string> newest_capture(std::ostream& err);

}  // namespace collect::ctl
