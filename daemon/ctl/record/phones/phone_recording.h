// What `android` and `ios` share of a recording: its options, and what is printed when it has
// ended.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "daemon/ctl/control/connection/control_target.h"
#include "daemon/ctl/record/phones/app_recording.h"
#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/ctl/record/summary/run_summary.h"

namespace collect::ctl {

struct RecordingOptions {
  std::string root;                  // given: an embedded collector stores there
  ControlTarget control;             // address empty: not given
  AgentSettings agent;               // settings of the app's agent
  std::vector<std::string> symbols;  // directories with unstripped files
  bool json = false;
  bool quiet = false;
  size_t columns = 0;  // of the terminal, for tables; 0: there is none
};

// One line on the error stream, or an object there; kExitRunFailed.
int run_failed(const RecordingOptions& options, std::ostream& err, const Error& error);

// "on R58M (Sim_Phone): the app ended"
std::string ending_text(const std::string& device, AppRecording::End end);

// The directory with unstripped files for a session's directory; empty: there are none.
using FindSymbols = std::function<std::string(const std::string& session)>;

// Says what the recording of `app` came to, and ends the collector if it is ours. `outcome` has
// what is known of the app and the device; the exit code is 0 or kExitRunFailed. `more_symbols` is
// asked where --symbols left functions without names.
int conclude(const RecordingOptions& options, const std::string& app, RunCollector& collector,
             RunOutcome outcome, RunSessions followed, JobSignals& signals, std::ostream& err,
             const FindSymbols& more_symbols = nullptr);

}  // namespace collect::ctl
