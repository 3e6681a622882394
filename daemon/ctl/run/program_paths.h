// Where collectctl finds the programs that it starts: beside itself, in a build tree as in an
// installation.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

// The directory of the running program, from /proc/self/exe.
std::string own_directory();

// In the order in which they are tried, for a program in `own_directory`.
std::vector<std::string> agent_library_candidates(const std::string& own_directory);

// Absolute path of libcollect_agent.so: COLLECT_AGENT_LIBRARY, or the first candidate that exists.
Result<std::string> find_agent_library();
// Absolute path of collectord: COLLECT_COLLECTORD, or beside this program.
Result<std::string> find_collectord();

// What a shell would run for `name`: kNotFound (its exit code 127) or kPermission (126).
Result<std::string> find_program(const std::string& name);

}  // namespace collect::ctl
