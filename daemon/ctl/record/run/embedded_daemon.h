// A collectord of our own for one run. It leaves with us: by stop(), and by the kernel if we are
// killed before.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ctl/record/program/job.h"
#include "formats/core/result.h"

namespace collect::ctl {

inline constexpr std::chrono::milliseconds kDaemonReadyBound{15'000};
inline constexpr std::chrono::milliseconds kDaemonStopBound{20'000};
inline constexpr size_t kMaxReadyBytes = 4096;
inline constexpr const char* kDaemonLog = "collectord.log";  // below the root

struct DaemonAddresses {
  std::string ingest;
  std::string control;
  std::string web = {};  // of the live page, with its token; empty: there is none
};

// What collectord writes to its ready descriptor: one line of JSON with "ingest" and "control",
// perhaps "web".
Result<DaemonAddresses> parse_ready(const std::string& text);

class EmbeddedDaemon {
 public:
  // Creates `root` if need be, starts it there with `more` flags, and returns when the daemon is
  // ready. kAlreadyExists when another run records into `root`, and still does at `root_bound`; any
  // other error holds what the daemon said.
  static Result<std::unique_ptr<EmbeddedDaemon>> start(const std::string& program,
                                                       const std::string& root,
                                                       const std::string& control,
                                                       const std::vector<std::string>& more,
                                                       std::chrono::milliseconds root_bound,
                                                       JobSignals& signals);
  ~EmbeddedDaemon();  // kills what stop() has not ended
  EmbeddedDaemon(const EmbeddedDaemon&) = delete;
  EmbeddedDaemon& operator=(const EmbeddedDaemon&) = delete;

  const DaemonAddresses& addresses() const { return addresses_; }

  // How it ended, if it has although it was not stopped; empty: it runs.
  std::string ending();
  // What is done until stop() is done while it stops.
  void ask_to_stop();
  // ask_to_stop(), then waits; SIGKILL at the bound, which is an error, as is any other exit code
  // than 0.
  Status stop(JobSignals& signals);

 private:
  EmbeddedDaemon(pid_t pid, std::string log_path) : pid_(pid), log_path_(std::move(log_path)) {}

  pid_t pid_;  // 0 once it has ended
  std::string ending_;
  std::string log_path_;
  DaemonAddresses addresses_;
};

}  // namespace collect::ctl
