#include "daemon/ctl/record/summary/nothing_recorded.h"

#include <fmt/core.h>
#include <string.h>

#include "daemon/ctl/control/messages/message_json.h"
#include "daemon/ctl/control/messages/text.h"

namespace collect::ctl {
namespace {

using control::v1::Session;

// Why a session without events has none, where the cause is not the program's; empty: it is.
std::string why_empty(const RunOutcome& outcome, control::v1::SessionState state) {
  for (const Session& session : outcome.sessions) {
    if (session.state() != state) continue;
    return fmt::format("  Nothing was recorded, {} is {}:\n  {}\n", printable(session.path()),
                       state_word(state), printable_sentence(session.missing()));
  }
  return "";
}

// Where the agent was not loaded, or a signal ended the program; empty: neither.
std::string nothing_came(const RunOutcome& outcome) {
  const std::string signal = ended_by(outcome.exit_code);
  if (!outcome.no_preload.empty()) {
    return fmt::format(
        "  The agent could not be loaded into the program: it {},\n  and LD_PRELOAD does nothing "
        "then. Link it dynamically, or link it with the agent.\n",
        outcome.no_preload);
  }
  if (!signal.empty() && !outcome.outlived) {
    return fmt::format(
        "  The program was ended by a signal ({}) before anything of it was shipped.\n  With "
        "--drain process, what was in its rings is shipped all the same.\n",
        signal);
  }
  if (!outcome.agent_seen && !signal.empty()) {
    return fmt::format(
        "  The program was ended by a signal ({}) before its agent reached the\n  collector: "
        "perhaps before the agent was loaded. COLLECT_LOG=1 makes the agent say what it does.\n",
        signal);
  }
  if (!outcome.agent_seen) {
    return "  No process of this run reached the collector, though the program can load the "
           "agent.\n"
           "  A program that clears its environment, or is a script whose interpreter is "
           "set-user-id\n  or static, runs without it; so does one with AddressSanitizer, unless\n"
           "  ASAN_OPTIONS=verify_asan_link_order=0 is set. COLLECT_LOG=1 makes the agent print "
           "what\n"
           "  it does.\n";
  }
  if (!signal.empty()) {
    return fmt::format(
        "  The program was ended by a signal ({}), and no traced function had been\n  called "
        "before.\n",
        signal);
  }
  return "";
}

}  // namespace

std::string ended_by(int exit_code) {
  constexpr int kSignals = 32;  // those with names
  if (exit_code <= 128 || exit_code >= 128 + kSignals) return "";
  const char* name = ::strsignal(exit_code - 128);
  return name != nullptr ? name : "";
}

std::string nothing_recorded(const RunOutcome& outcome) {
  if (std::string why = why_empty(outcome, control::v1::SESSION_STATE_FAILED); !why.empty()) {
    return why;
  }
  uint64_t left_out = 0;
  for (const Session& session : outcome.sessions) left_out += session.calls_left_out();
  if (left_out != 0) {
    return fmt::format(
        "  Nothing was recorded: {} left out, as function filter, --max-depth and --longer-than "
        "ask.\n",
        counted(left_out, "call"));
  }
  if (!outcome.start_command.empty() && outcome.agent_seen && outcome.sessions.empty()) {
    return fmt::format(
        "  Nothing was recorded: with --idle, a recording begins when someone asks for it, by\n    "
        "  {}\n",
        outcome.start_command);
  }
  if (outcome.filtered && outcome.agent_seen) {
    return "  Nothing was recorded: no function that --only and --except leave was called, or the\n"
           "  program is not instrumented (-finstrument-functions).\n";
  }
  if (outcome.dynamic && outcome.attached && outcome.agent_seen) {
    return "  Nothing was recorded: no function of the modules that --dynamic names was called. "
           "Without\n  --dynamic that is the program alone; --dynamic='*' records its libraries, "
           "too.\n";
  }
  if (outcome.timed && outcome.agent_seen) {
    return "  Nothing was recorded in the time that --max-time allows: no traced function was "
           "called "
           "in\n  it, or the program is not instrumented (-finstrument-functions).\n";
  }
  if (std::string why = nothing_came(outcome); !why.empty()) return why;
  if (std::string why = why_empty(outcome, control::v1::SESSION_STATE_RECOVERED); !why.empty()) {
    return why;
  }
  if (outcome.dynamic) {
    return "  The program ran with the agent, but called no function that --dynamic could record, "
           "or "
           "its\n  code could not be changed. COLLECT_LOG=1 makes the agent say why.\n";
  }
  return "  The program ran with the agent, but called no traced function: it is not "
         "instrumented.\n"
         "  Of a shell or an interpreter, only the programs that it starts can be traced. Build "
         "them,\n"
         "  and the libraries you care about, with\n"
         "      -finstrument-functions -g\n"
         "  in CFLAGS and CXXFLAGS, link dynamically, and run again. The sources need no change.\n"
         "  Or record it as it is: collectctl run --dynamic.\n";
}

}  // namespace collect::ctl
