#include "daemon/ctl/record/phones/phone_recording.h"

#include <fmt/core.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/convert/symbolize.h"
#include "daemon/ctl/record/run/run_command.h"
#include "daemon/ctl/record/summary/newest_session.h"

namespace collect::ctl {
namespace {

using End = AppRecording::End;

std::string phone_end_text(End end) {
  switch (end) {
    case End::kAppEnded:
      return "the app ended";
    case End::kRecordingEnded:
      return "the recording ended; the app continues untraced";
    case End::kInterrupted:
      return "the recording was ended here; the app continues untraced";
    case End::kAgentLost:
      return "the agent did not come back";
    case End::kNoAgent:
    case End::kCollectorLost:
      break;
  }
  return "the recording failed; the app continues";
}

// Why names that were asked for are not there; empty: they are, or no one asked.
std::string name_functions(const std::string& session, const RecordingOptions& options,
                           const FindSymbols& more_symbols) {
  std::ostringstream out, errors;
  if (!options.symbols.empty() &&
      symbolize({session, options.symbols}, out, errors) == kExitUsage) {
    return "no names: " + errors.str();
  }
  const std::string found = more_symbols ? more_symbols(session) : "";
  if (found.empty()) return "";
  std::vector<std::string> directories = options.symbols;
  directories.push_back(found);
  const int code = symbolize({session, directories}, out, errors);
  return code == kExitUsage ? "no names: " + errors.str() : "";
}

}  // namespace

int run_failed(const RecordingOptions& options, std::ostream& err, const Error& error) {
  failed(err, error, options.json);
  return kExitRunFailed;
}

std::string ending_text(const std::string& device, AppRecording::End end) {
  return fmt::format("on {}: {}", device, phone_end_text(end));
}

int conclude(const RecordingOptions& options, const std::string& app, RunCollector& collector,
             RunOutcome outcome, RunSessions followed, JobSignals& signals, std::ostream& err,
             const FindSymbols& more_symbols) {
  outcome.program = app;
  outcome.agent_seen = outcome.agent_seen || followed.agent_seen;
  outcome.sessions = std::move(followed.sessions);
  outcome.unmatched.assign(followed.filter.unmatched.begin(), followed.filter.unmatched.end());
  outcome.filter_error = std::move(followed.filter.error);
  outcome.filtered = !options.agent.only.empty() || !options.agent.except.empty();
  outcome.timed = options.agent.max_time.has_value();
  outcome.waits = options.agent.full == "wait";
  outcome.rated = options.agent.max_rate.has_value();
  if (options.agent.start_idle) outcome.start_command = start_command(collector);
  const auto add_trouble = [&outcome](const std::string& text) {
    if (!text.empty()) outcome.trouble += (outcome.trouble.empty() ? "" : "; ") + text;
  };
  add_trouble(followed.trouble);
  if (collector.embedded) {
    if (Status stopped = collector.embedded->stop(signals); !stopped.ok()) {
      add_trouble(stopped.error().message);
    }
  }
  for (const api::Session& session : outcome.sessions) {
    if (is_sealed(session)) add_trouble(name_functions(session.path(), options, more_symbols));
  }
  std::ostringstream unsaid;  // with JSON the error stream holds nothing else
  note_newest_session(outcome.sessions, collector.control, options.json ? unsaid : err);
  const api::Session* const largest = largest_session(outcome.sessions);
  const bool failed =
      std::any_of(outcome.sessions.begin(), outcome.sessions.end(), is_incomplete) ||
      !outcome.trouble.empty() || !outcome.unmatched.empty() || !outcome.filter_error.empty();
  outcome.exit_code = failed ? kExitRunFailed : 0;
  if (outcome.rated && largest != nullptr) outcome.switched_off = switched_off(largest->path());
  if (options.json) {
    err << run_summary_json(outcome);
  } else if (!options.quiet || failed || largest == nullptr) {
    if (largest != nullptr) outcome.top = top_functions(*largest);
    err << run_summary_text(outcome);
  }
  err.flush();
  return outcome.exit_code;
}

}  // namespace collect::ctl
