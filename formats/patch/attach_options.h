// What collectctl passes to an agent that Android's runtime loads into an app that runs: the
// options of `am attach-agent PROCESS LIBRARY=OPTIONS`, and the agent's answer. DYNAMIC.md
// "Android".
//
// Options are lines: the path of the file for the answer, then the settings, NAME=value each. The
// answer is one line, in a file that appears whole.
#pragma once

#include <cstddef>

namespace collect::patch {

inline constexpr size_t kAgentOptionsBytes = 24'576;
inline constexpr size_t kAgentAnswerBytes = 1024;

// What an answer begins with. A sentence follows: the agent's status, or why it is off.
inline constexpr char kAnswerAttached[] = "attached: ";
inline constexpr char kAnswerFailed[] = "failed: ";

}  // namespace collect::patch
