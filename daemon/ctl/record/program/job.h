// Child processes of `run` and the signals around them. Everything happens on the thread that made
// the JobSignals, which must be the main thread, before any other exists: the others inherit the
// blocked mask, so that signals wait until they are asked for and no handler is needed.
#pragma once

#include <sys/types.h>
#include <csignal>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/result.h"

namespace collect::ctl {

struct Signal {
  int number = 0;          // 0: none came in time
  bool from_user = false;  // someone's kill(2); a terminal's reach the whole process group
};

// Blocks SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD and SIGPIPE; children get the mask that was
// there before.
class JobSignals {
 public:
  JobSignals();
  ~JobSignals();
  JobSignals(const JobSignals&) = delete;
  JobSignals& operator=(const JobSignals&) = delete;

  Signal wait(std::chrono::milliseconds timeout);
  const sigset_t& original_mask() const { return original_; }

 private:
  sigset_t waited_{};
  sigset_t original_{};
};

// Starts `program` (a path) in this process group, with our standard streams. kNotFound,
// kPermission.
Result<pid_t> start_program(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment, const JobSignals& signals);

// The exit code as a shell gives it (128 + signal), once the process has ended.
std::optional<int> exit_code_if_ended(pid_t pid);

// Waits for the process and passes on what was meant for it: SIGTERM and SIGHUP always, the keys'
// signals only when they did not come from the terminal.
// Calls `look` about once a second, and when some child has ended.
int wait_for_program(pid_t pid, JobSignals& signals, const std::function<void()>& look = nullptr);

// As wait_for_program, without passing anything on; nullopt when it has not ended in time.
std::optional<int> wait_bounded(pid_t pid, JobSignals& signals, std::chrono::milliseconds bound);

// True while a process with this number exists.
bool is_alive(pid_t pid);

// NULL-terminated pointers into `strings`, as exec wants them.
std::vector<char*> c_strings(const std::vector<std::string>& strings);

}  // namespace collect::ctl
