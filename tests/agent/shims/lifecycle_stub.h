// What the shims ask the agent's lifecycle, answered by the test.
#pragma once

namespace collect::agent {

inline bool running = false;
inline int exit_report = -1;  // where before_exit() writes the code

}  // namespace collect::agent
