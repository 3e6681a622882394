// What `run` says when the program has ended: one screen, the most important first.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "collect/control/v1/control.pb.h"
#include "daemon/ctl/check/switched_off.h"
#include "daemon/ctl/record/summary/run_processes.h"

namespace collect::ctl {

struct TopFunction {
  std::string name;
  uint64_t calls = 0;
  double self_share = 0;  // of the time of all functions, 0 to 1
  bool is_cpu = false;    // on a processor, not by the clock
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
  std::vector<std::string> not_covered;        // libraries that --dynamic='*' would record, too
  bool attached = false;                       // in the middle of its life
  bool one_process = false;                    // what the program started was not to be recorded
  std::vector<std::string> unmatched;          // patterns of --only, --except that matched nothing
  std::map<std::string, std::string> nearest;  // what may have been meant by some of these
  std::string filter_error;                    // why there was no filter, and nothing was recorded
  bool filtered = false;                       // by --only or --except
  bool timed = false;                          // by --max-time
  std::string start_command;                   // of a run that began idle
  std::vector<control::v1::Session> sessions;  // of this run, sealed or not
  std::string no_switches;     // why there are none, or estimates alone, though they were wanted
  bool has_estimates = false;  // of times off the processor
  bool rated = false;          // functions may have been switched off (--max-rate)
  std::vector<SwitchedOff> switched_off;  // of the largest session
  std::vector<TopFunction> top;           // of the largest session; may be empty
  std::vector<MissingProcess> missing;    // ran with the agent, recorded, and left nothing here
  uint64_t unknown_processes = 0;         // of which nothing is known
  std::vector<QuietProgram> quiet;        // ran with the agent, and called no traced function
  std::string planned;                    // what --dynamic was for; with `became`
  std::string became;                     // what the program became by exec, and was not traced
  std::string trouble;                    // a sentence, when something of ours went wrong
};

inline constexpr size_t kMaxListedSessions = 10;
inline constexpr size_t kMaxListedProcesses = 10;
inline constexpr size_t kTopFunctions = 5;
inline constexpr size_t kNamedLibraries = 3;  // of those that were not covered
// The functions of larger sessions come after everything else, with a line of progress.
inline constexpr uint64_t kMaxQuickEvents = 5'000'000;

// Everything that was to be recorded was, and is stored.
bool is_whole(const RunOutcome& outcome);

std::string run_summary_text(const RunOutcome& outcome);
// One line of JSON: {"version":1,"exit_code":0,"agent_seen":true,"sessions":[…]}, with "trouble"
// where there was any, "missing":[{"pid":1,"uid":0,"program":"/bin/f","reason":"…"}] where a
// process is, "became":"/bin/g" where --dynamic was for a program that became another, with a
// function filter "unmatched":[…] and perhaps "filter_error", with libraries that --dynamic='*'
// would record, too, "not_covered":["/lib/libz.so.1"], and with
// --max-rate "switched_off":[{"name":"f","calls_per_second":1},…].
std::string run_summary_json(const RunOutcome& outcome);

// Whether it is sealed and has at most kMaxQuickEvents.
bool has_quick_top(const control::v1::Session& session);
// The functions with the most self time in a session directory; empty when it has no quick ones, or
// cannot be read.
std::vector<TopFunction> top_functions(const control::v1::Session& session);
// The same of a sealed session of any size, whose index.lod files are made if they are not there:
// the next look at it is quick.
std::vector<TopFunction> slow_top_functions(const control::v1::Session& session);
// Their lines of the summary.
std::string top_functions_text(const std::vector<TopFunction>& top);

// The session with the most events; nullptr when none has any.
const control::v1::Session* largest_session(const std::vector<control::v1::Session>& sessions);

}  // namespace collect::ctl
