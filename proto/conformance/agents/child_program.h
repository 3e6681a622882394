// The program whose agent is checked, in a process group of its own. One at a time; main thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/core/result.h"
#include "proto/conformance/agents/agent_bench.h"

namespace collect::conformance {

// Starts what a shell would run for `arguments`, without standard input and output; its agent
// connects to `address`. `token_file` may be empty. kNotFound, kPermission.
Result<std::unique_ptr<AgentProgram>> start_program(const std::vector<std::string>& arguments,
                                                    const std::string& address,
                                                    const std::string& token_file);

// SIGINT, SIGTERM and SIGHUP end the program that runs, too.
void end_program_on_signals();

}  // namespace collect::conformance
