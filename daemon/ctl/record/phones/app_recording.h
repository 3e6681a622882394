// A recording of one app from the moment at which it runs until the app, the recording or the user
// ends it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <ostream>
#include <set>
#include <string>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/record/phones/watched_app.h"
#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/ctl/record/summary/run_sessions.h"

namespace collect::ctl {

inline constexpr std::chrono::milliseconds kSessionLook{250};
// A recording often ends because its app did, which the phone says a little later.
inline constexpr std::chrono::milliseconds kAppEndGrace{1'000};
// A session whose agent is away for so long is worth a line.
inline constexpr std::chrono::milliseconds kInterruptedSilence{3'000};
// How long the agent of an app that runs has to reach the collector.
inline constexpr std::chrono::milliseconds kAgentBound{30'000};

// Ctrl-C, SIGTERM, SIGHUP: kept once seen.
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
  enum class End : uint8_t {
    kAppEnded,
    kInterrupted,
    kRecordingEnded,
    kAgentLost,  // its sessions were sealed without it
    kNoAgent,
    kCollectorLost
  };

  // `wait` says which agents and sessions are meant. One that has neither tag nor address gets the
  // address of the app's agent.
  AppRecording(WatchedApp& app, Client& collector, SealWait wait, std::ostream& err)
      : app_(app), collector_(collector), wait_(std::move(wait)), err_(err) {}

  End follow(Interruption& interruption);
  // Ends the recordings of an app that continues, and waits for what is on its way.
  RunSessions finish(End end, JobSignals& signals);
  // Whether a recording begins by a command of ours, as soon as the agent is there.
  void start_idle_agent() { starts_idle_ = true; }
  // The agent's settings: after --max-time it ends the recording by itself, which shows in no
  // session where nothing was called.
  void set_limits(const AgentSettings& agent);
  // The agent comes when the user starts the app: it is waited for without a bound, and
  // `meanwhile` is called at each look.
  void wait_for_start(std::function<void()> meanwhile) { meanwhile_ = std::move(meanwhile); }

 private:
  // False: the collector does not answer.
  bool look();
  void say(const std::string& sentence);
  void say_if_away();
  void attach_once();

  WatchedApp& app_;
  Client& collector_;
  SealWait wait_;
  std::ostream& err_;
  std::function<void()> meanwhile_;
  std::chrono::nanoseconds longest_{};  // 0: it has no end
  bool starts_idle_ = false;
  bool agent_seen_ = false;
  bool all_sealed_ = false;  // and there is one
  bool any_session_ = false;
  End sealed_end_ = End::kRecordingEnded;
  bool was_away_ = false;
  bool attach_asked_ = false;
  // Since when all sessions are recording or sealed, or the device was away.
  std::chrono::steady_clock::time_point agent_there_{};
  bool said_interrupted_ = false;
};

}  // namespace collect::ctl
