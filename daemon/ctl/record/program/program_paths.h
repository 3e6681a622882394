// Where collectctl finds the programs that it starts: beside itself, in a build tree as in an
// installation.
#pragma once

#include <string>

#include "daemon/inject/agent_library.h"
#include "formats/core/result.h"

namespace collect::ctl {

using inject::agent_library_candidates;
using inject::find_agent_library;
using inject::own_directory;

// Absolute path of collectord: COLLECT_COLLECTORD, or beside this program.
Result<std::string> find_collectord();

// What a shell would run for `name`: kNotFound (its exit code 127) or kPermission (126).
Result<std::string> find_program(const std::string& name);

}  // namespace collect::ctl
