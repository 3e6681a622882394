// Sessions that `convert` builds: there whole or not at all.
#pragma once

#include <functional>
#include <string>

#include "formats/core/result.h"

namespace collect::convert {

// `make` builds a session (…/session_X/pid_Y) below the root that it is given and returns where.
// That root is a temporary directory within `root`, and gone when Ctrl-C ends the program: it is
// not to be made again (PosixFs::hold). The whole session moves to `root`, under its name or, where
// that is taken, the next one. Returns where it is.
Result<std::string> make_whole_session(
    const std::string& root, const std::function<Result<std::string>(const std::string&)>& make);

}  // namespace collect::convert
