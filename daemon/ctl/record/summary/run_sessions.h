// Follows the sessions of one run, which share a tag, until their files are sealed.
#pragma once

#include <chrono>
#include <functional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/record/program/job.h"
#include "formats/core/result.h"

namespace collect::ctl {

// The wait for an ended process that has not connected: what it sent may still be on its way
// through the sockets.
inline constexpr std::chrono::milliseconds kConnectGrace{1000};
// Without any progress for this long, nothing more is expected.
inline constexpr std::chrono::milliseconds kSealStallBound{30'000};
// How long an agent whose program is gone, and which may outlive it, has to come back.
inline constexpr std::chrono::milliseconds kComeBackGrace{10'000};
// How long names are waited for, once everything is sealed. What comes later is in the manifest all
// the same, or is done by the collector's next start.
inline constexpr std::chrono::milliseconds kNamesBound{15'000};
// Waiting longer than this is worth a line.
inline constexpr std::chrono::milliseconds kSealSilence{1000};

// What became of --only and --except, in all processes of the run.
struct RunFilter {
  std::set<std::string> unmatched;  // patterns that no process has a function for
  std::string error;                // of the first process that could not be given a filter
};

struct RunSessions {
  bool agent_seen = false;
  RunFilter filter;
  std::vector<api::Session> sessions;  // oldest first
  std::string trouble;                 // why waiting ended early; empty when all are sealed
};

struct SealWait {
  std::string tag;
  std::string address;  // where there is no tag: of the one agent that is meant
  std::string device;   // where not empty: agents whose address begins so, "usbmux:UDID:"
  // Agents and sessions with that tag that are not of this run: the caller's own tag may have been
  // used before.
  std::set<std::string> before;
  // Processes of the run that still live may continue recording into a collector that stays; one
  // that leaves with the run has to wait for them.
  bool collector_stays = false;
  // Agents drain from processes of their own: one whose link is cut may come back although its
  // program is gone.
  bool agent_outlives = false;
  std::function<bool(pid_t)> process_lives;  // on this machine
  // Whether a process of this run that the collector does not show yet still ships, or is about to;
  // null: not known.
  std::function<bool()> any_ships = nullptr;
};

// The agents and sessions that `wait` means; sessions oldest first.
struct RunView {
  std::vector<api::Agent> agents;
  std::vector<api::Session> sessions;
};
Result<RunView> look_at_run(Client& client, const SealWait& wait);

// Names of the agents and sessions with that tag.
Result<std::set<std::string>> names_with_tag(const ControlTarget& control, const std::string& tag);

// Returns early when SIGINT, SIGTERM or SIGHUP arrives.
RunSessions wait_until_sealed(Client& client, const SealWait& wait, JobSignals& signals,
                              std::ostream& err);

}  // namespace collect::ctl
