// Where the agent's library is: beside the program that loads it into others, in a build tree as in
// an installation.
#pragma once

#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::inject {

// The directory of the running program, from /proc/self/exe.
std::string own_directory();

// In the order in which they are tried, for a program in `own_directory`.
std::vector<std::string> agent_library_candidates(const std::string& own_directory);

// Absolute path of the file that a variable of the environment names. kNotFound: it is none.
Result<std::string> file_of_variable(const char* variable, const char* path);

// Absolute path of libcollect_agent.so: COLLECT_AGENT_LIBRARY, or the first candidate that exists.
Result<std::string> find_agent_library();

}  // namespace collect::inject
