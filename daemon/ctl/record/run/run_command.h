// `collectctl run -- CMD…`: the program as the user would start it, traced.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "daemon/ctl/control/connection/control_target.h"
#include "daemon/ctl/record/program/run_environment.h"

namespace collect::ctl {

// As env(1) and timeout(1) have it.
inline constexpr int kExitRunFailed = 125;
inline constexpr int kExitNotExecutable = 126;
inline constexpr int kExitNotFound = 127;

struct RunOptions {
  std::vector<std::string> command;  // not empty
  std::string root;                  // given: an embedded collector stores there
  ControlTarget control;             // address empty: not given
  AgentSettings agent;               // library, connect and tag are filled in here
  std::vector<std::string> dynamic;  // modules that are traced though not prepared; empty: none
  bool program_only = false;         // what the program starts is not recorded
  bool web = false;                  // serve the live page while it runs
  bool open = false;                 // show the recording in the browser at the end
  bool json = false;                 // the summary as one line of JSON
  bool quiet = false;                // no word from us unless something is wrong
};

// Returns the program's own exit code (128 + signal), or one of the three above. Everything that
// we say goes to `err`. To be called before any other thread exists.
int run_program(const RunOptions& options, std::ostream& err);

}  // namespace collect::ctl
