// A recording of one app from the moment at which it runs until the app, the recording or the user
// ends it.
#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>

#include "daemon/ctl/android/app_watch.h"
#include "daemon/ctl/client.h"
#include "daemon/ctl/job.h"
#include "daemon/ctl/run_collector.h"
#include "daemon/ctl/run_sessions.h"

namespace collect::ctl {

inline constexpr std::chrono::milliseconds kSessionLook{250};
// A recording often ends because its app did, which the phone says a little later.
inline constexpr std::chrono::milliseconds kAppEndGrace{1'000};
// How long the agent of an app that runs has to reach the collector.
inline constexpr std::chrono::milliseconds kAgentBound{30'000};

// Ctrl-C, SIGTERM, SIGHUP: remembered once seen.
class Interruption {
 public:
  explicit Interruption(JobSignals& signals) : signals_(signals) {}
  bool look();

 private:
  JobSignals& signals_;
  bool seen_ = false;
};

class AppRecording {
 public:
  enum class End : uint8_t { kAppEnded, kInterrupted, kRecordingEnded, kNoAgent, kCollectorLost };

  // `wait` says which agents and sessions are meant: by tag, or, where it has none, by the address
  // that the watched process has on `device`.
  AppRecording(const AdbDevice& device, AppWatch& watch, Client& collector, SealWait wait,
               std::ostream& err)
      : device_(device), watch_(watch), collector_(collector), wait_(std::move(wait)), err_(err) {}

  End follow(Interruption& interruption);
  // Ends the recordings of an app that goes on, and waits for what is on its way.
  RunSessions finish(End end, JobSignals& signals);
  // Whether a recording begins by a command of ours, as soon as the agent is there.
  void start_idle_agent() { starts_idle_ = true; }

 private:
  // False: the collector does not answer.
  bool look();
  void attach_once();

  const AdbDevice& device_;
  AppWatch& watch_;
  Client& collector_;
  SealWait wait_;
  std::ostream& err_;
  bool by_address_ = false;
  bool starts_idle_ = false;
  bool agent_seen_ = false;
  bool all_sealed_ = false;  // and there is one
  bool was_away_ = false;
  bool attach_asked_ = false;
};

}  // namespace collect::ctl
