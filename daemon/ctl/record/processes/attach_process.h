// `collectctl attach PID` and `detach PID`: processes of this machine that run already.
#pragma once

#include <sys/types.h>

#include <ostream>
#include <string>
#include <vector>

#include "daemon/ctl/record/phones/phone_recording.h"

namespace collect::ctl {

struct ProcessOptions : RecordingOptions {
  pid_t pid = 0;
  std::vector<std::string> dynamic;  // as of run; empty: the program itself
};

// Records until the process, the recording or Ctrl-C ends it, then lets go of the process. Returns
// 0 or kExitRunFailed. To be called before any other thread exists.
int attach_process(const ProcessOptions& options, std::ostream& err);

// Whether there is such a process, and an agent was loaded into it.
bool has_agent(pid_t pid);

// Ends what an earlier attach_process left: the agent ships the rest and switches off. Returns 0 or
// kExitRunFailed.
int detach_process(const ProcessOptions& options, std::ostream& out, std::ostream& err);

}  // namespace collect::ctl
