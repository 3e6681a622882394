// What `run` says when the program has ended: one screen, the most important first.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ctl/offline/switched_off.h"

namespace collect::ctl {

struct TopFunction {
  std::string name;
  uint64_t calls = 0;
  double self_share = 0;  // of the time of all functions, 0 to 1
};

struct RunOutcome {
  std::string program;
  int exit_code = 0;
  std::string app_ending;                      // of an app on a phone: where, and how it ended
  bool agent_seen = false;                     // any process of this run said hello
  std::string no_preload;                      // why no agent can be in the program; may be empty
  bool outlived = false;                       // agents ship from processes of their own
  bool waits = false;                          // threads wait where a ring is full
  bool dynamic = false;                        // its code was to be changed (--dynamic)
  bool attached = false;                       // in the middle of its life
  bool one_process = false;                    // what the program started was not to be recorded
  std::vector<std::string> unmatched;          // patterns of --only, --except that matched nothing
  std::string filter_error;                    // why there was no filter, and nothing was recorded
  bool filtered = false;                       // by --only or --except
  bool timed = false;                          // by --max-time
  std::string start_command;                   // of a run that began idle
  std::vector<control::v1::Session> sessions;  // of this run, sealed or not
  bool rated = false;                          // functions may have been switched off (--max-rate)
  std::vector<SwitchedOff> switched_off;       // of the largest session
  std::vector<TopFunction> top;                // of the largest session; may be empty
  std::string trouble;                         // a sentence, when something of ours went wrong
};

inline constexpr size_t kMaxListedSessions = 10;
inline constexpr size_t kTopFunctions = 5;
inline constexpr uint64_t kMaxQuickEvents = 5'000'000;  // more take longer than people wait

std::string run_summary_text(const RunOutcome& outcome);
// One line of JSON: {"version":1,"exit_code":0,"agent_seen":true,"sessions":[…]}, with "trouble"
// where there was any, with a function filter "unmatched":[…] and perhaps "filter_error", and with
// --max-rate "switched_off":[{"name":"f","calls_per_second":1},…].
std::string run_summary_json(const RunOutcome& outcome);

// The functions with the most self time in a session directory; empty when it has too many events
// for a quick look, or cannot be read.
std::vector<TopFunction> top_functions(const control::v1::Session& session);

// The session with the most events; nullptr when none has any.
const control::v1::Session* largest_session(const std::vector<control::v1::Session>& sessions);

}  // namespace collect::ctl
