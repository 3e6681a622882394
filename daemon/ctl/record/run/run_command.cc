#include "daemon/ctl/record/run/run_command.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/look/open_page.h"
#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/program/module_list.h"
#include "daemon/ctl/record/program/preload_check.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "daemon/ctl/record/run/dynamic_plans.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/ctl/record/summary/newest_session.h"
#include "daemon/ctl/record/summary/run_processes.h"
#include "daemon/ctl/record/summary/run_sessions.h"
#include "daemon/ctl/record/summary/run_summary.h"
#include "daemon/ctl/terminal/terminal.h"
#include "daemon/symbolize/nearest_function.h"
#include "formats/core/text/environment_names.h"
#include "formats/core/threads.h"
#include "storage/fs/posix_fs.h"
#include "storage/manifest/manifest.h"

namespace collect::ctl {
namespace {

constexpr std::chrono::milliseconds kConnectBound{1000};

// The clock by which agents record.
uint64_t boottime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

RunOutcome finish(Client& client, const SealWait& wait, JobSignals& signals, std::ostream& err) {
  RunOutcome outcome;
  RunSessions followed = wait_until_sealed(client, wait, signals, err);
  outcome.agent_seen = followed.agent_seen;
  outcome.sessions = std::move(followed.sessions);
  outcome.trouble = std::move(followed.trouble);
  outcome.unmatched.assign(followed.filter.unmatched.begin(), followed.filter.unmatched.end());
  outcome.filter_error = std::move(followed.filter.error);
  return outcome;
}

// While the program runs. That the collector is gone is said at once, and to the agents too: they
// would wait for it.
class RunWatch {
 public:
  RunWatch(RunProcesses& processes, RunCollector& collector, std::ostream* err)
      : processes_(processes), collector_(collector), err_(err) {}

  void look() {
    processes_.look();
    if (!ending_.empty() || !collector_.embedded) return;
    ending_ = collector_.embedded->ending();
    if (ending_.empty()) return;
    processes_.end_run();
    if (err_ == nullptr) return;
    *err_ << "collectctl: " << printable_sentence(ending_)
          << "; the program continues, and is recorded no more\n";
    err_->flush();
  }
  const std::string& ending() const { return ending_; }

 private:
  RunProcesses& processes_;
  RunCollector& collector_;
  std::ostream* err_;  // null: not a word
  std::string ending_;
};

// What the processes of the run say of themselves, and what of it no one would know otherwise.
void account(const RunProcesses& processes, const std::string& planned, RunOutcome& outcome) {
  outcome.missing = processes.missing(outcome.sessions);
  outcome.unknown_processes = processes.left_out();
  outcome.quiet = processes.quiet();
  bool recorded = false;
  const std::string last = processes.last_program(recorded);
  // A script or a launcher: the plans are of what was started first. The record has the end of a
  // path.
  std::error_code ignored;
  const std::string real = std::filesystem::canonical(planned, ignored).string();
  if (outcome.dynamic && !last.empty() && !recorded && !real.ends_with(last)) {
    outcome.became = last;
    outcome.planned = real;
  }
}

void add_trouble(RunOutcome& outcome, const std::string& trouble) {
  if (trouble.empty()) return;
  outcome.trouble += (outcome.trouble.empty() ? "" : "; ") + trouble;
}

int code_for(const Error& error) {
  if (error.code == Code::kNotFound) return kExitNotFound;
  return error.code == Code::kPermission ? kExitNotExecutable : kExitRunFailed;
}

void announce(const patch::ModulePlans& plans, const std::string& program,
              const std::string& started, std::ostream& err) {
  if (started != program) {
    err << "collectctl: " << printable(program) << " is a script that " << printable(started)
        << " runs: that is what --dynamic records\n";
  }
  for (const std::string& sentence : plans.left_out) {
    err << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  err << "collectctl: records " << counted(plans.functions, "function") << " of "
      << (plans.modules.size() == 1 ? printable(plans.modules.front())
                                    : counted(plans.modules.size(), "module"))
      << " without preparation\n";
}

// So many patterns that match nothing are compared with the existing names.
constexpr size_t kMaxNearest = 4;

// With the names of the program's own file, which a child process reads.
void find_nearest(RunOutcome& outcome) {
  if (outcome.unmatched.empty() || outcome.sessions.empty()) return;
  const std::string& directory = outcome.sessions.front().path();
  storage::PosixFs fs(directory);
  const auto manifest = storage::read_manifest(fs, directory);
  if (!manifest.ok() || manifest->modules.empty()) return;
  symbolize::SymbolizerOptions options;
  options.program = symbolize::symbolizer_program();
  const symbolize::Symbolizer symbolizer(options);
  for (size_t i = 0; i < std::min(outcome.unmatched.size(), kMaxNearest); ++i) {
    const std::string& word = outcome.unmatched[i];
    std::string near = symbolize::nearest_function(symbolizer, manifest->modules.front(), word);
    if (!near.empty()) outcome.nearest[word] = std::move(near);
  }
}

// Every session of the run on one page. That it cannot be shown is printed, and no failure of the
// run.
void open_sessions(const std::vector<api::Session>& sessions, std::ostream& err) {
  OpenOptions open;
  open.no_serve = true;  // the run is over
  for (const api::Session& session : sessions) {
    if (session.events() != 0) open.page.inputs.push_back(session.path());
  }
  if (!open.page.inputs.empty()) open_page(open, err, err);
}

template <class T>
Status take(Result<T> made, T& to) {
  if (!made.ok()) return made.error();
  to = std::move(*made);
  return {};
}

// What a run has before its program starts.
struct Prepared {
  std::string program;  // a path
  AgentSettings agent;
  std::optional<patch::ModulePlans> plans;
  std::unique_ptr<RunProcesses> processes;
  RunCollector collector;
  std::set<std::string> before;  // agents and sessions with the caller's tag
  std::vector<std::string> environment;
  bool is_idle = false;
};

void warn_of_unknown_variables(std::ostream& err) {
  for_each_unknown_variable(environ, [&err](const UnknownVariable& unknown) {
    err << "collectctl: ";
    put_unknown_variable(
        unknown, [&err](std::string_view words) { err << words; },
        [](std::string_view name) { return printable(name); });
    err << "\n";
  });
}

// `run.program` is found already.
Status prepare(const RunOptions& options, JobSignals& signals, std::ostream& err, Prepared& run) {
  const bool is_silent = options.quiet || options.json;
  run.agent = options.agent;
  COLLECT_TRY(take(find_agent_library(), run.agent.library));
  const std::string tag_of_caller = given_tag(own_environment());
  run.agent.tag = tag_of_caller.empty() ? new_run_tag() : tag_of_caller;
  warn_of_unknown_variables(err);
  if (!options.dynamic.empty()) {
    auto made = make_dynamic_plans(run.program, options.dynamic, own_environment());
    if (!made.ok()) return made.error();
    run.plans.emplace(std::move(*made));
    run.agent.plans = run.plans->folder.path();
    if (!is_silent) announce(*run.plans, run.program, started_program(run.program), err);
  }
  COLLECT_TRY(take(RunProcesses::make(), run.processes));
  CollectorRequest wanted{options.root, options.control, Phones::kNone};
  wanted.web = options.web;
  wanted.guest_token_file = run.processes->key_file();
  COLLECT_TRY(take(find_collector(wanted, signals), run.collector));
  run.agent.connect = run.collector.ingest;
  run.agent.run = run.processes->directory();
  // One that ran already has rules of its own, and does not know this run.
  if (run.collector.embedded) run.agent.run_key = run.processes->key();
  if (!tag_of_caller.empty()) {
    COLLECT_TRY(take(names_with_tag(run.collector.control, tag_of_caller), run.before));
  }
  // A caller's own COLLECT_CHILD_OF names the parent of collectctl, and means the same.
  if (options.program_only || records_one_process(own_environment())) {
    run.agent.only_child_of = ::getpid();
  }
  if (run.agent.max_time) run.agent.max_time_since_ns = boottime_ns();
  COLLECT_TRY(take(agent_environment(own_environment(), run.agent), run.environment));
  run.is_idle = starts_idle(run.environment);
  if (!is_silent) announce(run.collector, run.is_idle, err);
  return {};
}

// The program has ended: waits for its sessions, and gathers what became of them.
RunOutcome conclude(const RunOptions& options, Prepared& run, std::unique_ptr<Client> client,
                    RunWatch& watch, JobSignals& signals, std::ostream& err) {
  RunProcesses& processes = *run.processes;
  const bool is_own_collector = run.collector.embedded != nullptr;
  SealWait wait{run.agent.tag,
                "",
                "",
                run.before,
                !is_own_collector,
                drains_by_process(run.environment),
                [&processes](pid_t pid) { return processes.lives(pid); }};
  wait.any_ships = [&] {
    watch.look();
    return processes.any_ships(is_own_collector);
  };
  watch.look();
  RunOutcome outcome = finish(*client, wait, signals, err);
  client.reset();  // a collector that stops waits for it
  watch.look();
  if (is_own_collector) {
    processes.end_run();
    run.collector.embedded->ask_to_stop();
  }
  outcome.outlived = wait.agent_outlives;
  outcome.waits = waits_when_full(run.environment);
  outcome.timed = ends_by_time(run.environment);
  outcome.filtered = filters_functions(run.environment);
  outcome.rated = limits_rates(run.environment);
  outcome.dynamic = run.plans.has_value();
  if (run.plans) outcome.not_covered = run.plans->not_asked_for;
  outcome.one_process = records_one_process(run.environment);
  if (run.is_idle) outcome.start_command = start_command(run.collector);
  outcome.no_preload = why_no_preload(run.program);
  find_nearest(outcome);
  const auto* const largest = largest_session(outcome.sessions);
  if (largest != nullptr && !options.json && !options.quiet) outcome.top = top_functions(*largest);
  if (is_own_collector) {
    add_trouble(outcome, watch.ending());
    if (Status stopped = run.collector.embedded->stop(signals); !stopped.ok()) {
      add_trouble(outcome, stopped.error().message);
    }
  }
  account(processes, started_program(run.program), outcome);
  return outcome;
}

void note_switches(const std::string& session, RunOutcome& outcome) {
  storage::PosixFs fs(session);
  const auto manifest = storage::read_manifest(fs, session);
  if (!manifest.ok()) return;
  outcome.no_switches = manifest->identity.no_switches;
  outcome.has_estimates = manifest->identity.switches;
}

volatile sig_atomic_t code_of_interrupt = 0;

void end_at_once(int) {
  ::_exit(code_of_interrupt);
}

// All else is done and said: an interrupt ends it.
void print_slow_functions(const control::v1::Session& session, int exit_code, std::ostream& err) {
  code_of_interrupt = exit_code;
  ::signal(SIGINT, end_at_once);
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  ::pthread_sigmask(SIG_UNBLOCK, &interrupt, nullptr);
  const bool is_terminal = ::isatty(STDERR_FILENO) != 0;
  if (is_terminal) {
    err << fmt::format("  adding up the times of {} events; Ctrl-C leaves it",
                       with_thousands(session.events()))
        << std::flush;
  }
  const std::string text = top_functions_text(slow_top_functions(session));
  if (is_terminal) restart_line(err);
  err << text << std::flush;
}

void report_outcome(const RunOptions& options, const ControlTarget& control, RunOutcome& outcome,
                    int exit_code, std::ostream& err) {
  std::ostringstream unsaid;  // with JSON the error stream holds nothing else
  note_newest_session(outcome.sessions, control, options.json ? unsaid : err);
  const auto* const largest = largest_session(outcome.sessions);
  if (outcome.rated && largest != nullptr) outcome.switched_off = switched_off(largest->path());
  if (options.json) {
    err << run_summary_json(outcome);
  } else if (!options.quiet || !is_whole(outcome) || largest == nullptr) {
    // It was to be quiet, and has something to say.
    if (largest != nullptr && options.quiet) outcome.top = top_functions(*largest);
    if (largest != nullptr) note_switches(largest->path(), outcome);
    err << run_summary_text(outcome) << std::flush;
    if (largest != nullptr && !has_quick_top(*largest)) {
      print_slow_functions(*largest, exit_code, err);
    }
  }
  if (options.open) open_sessions(outcome.sessions, err);
  err.flush();
}

}  // namespace

int run_program(const RunOptions& options, std::ostream& err) {
  const auto failed_before_start = [&](const Error& error, int code) {
    failed(err, error, options.json);
    return code;
  };
  JobSignals signals;
  Prepared run;
  Result<std::string> program = find_program(options.command.front());
  if (!program.ok()) return failed_before_start(program.error(), code_for(program.error()));
  run.program = std::move(*program);
  if (const Status ready = prepare(options, signals, err, run); !ready.ok()) {
    return failed_before_start(ready.error(), kExitRunFailed);
  }
  const Result<pid_t> child = start_program(run.program, options.command, run.environment, signals);
  if (!child.ok()) return failed_before_start(child.error(), code_for(child.error()));
  // Connected while the program runs, so that no one waits for that afterwards; what is wrong with
  // the connection shows then.
  auto client = std::make_unique<Client>(run.collector.control);
  // Without a thread for it, it is connected later.
  auto connecting = start_thread(
      "connecting", [&client] { (void)contain([&] { (void)client->stats(kConnectBound); }); });
  run.processes->set_program(*child);
  RunWatch watch(*run.processes, run.collector, options.quiet || options.json ? nullptr : &err);
  const int exit_code = wait_for_program(*child, signals, [&watch] { watch.look(); });
  if (connecting.ok()) connecting->join();

  RunOutcome outcome = conclude(options, run, std::move(client), watch, signals, err);
  outcome.program = options.command.front();
  outcome.exit_code = exit_code;
  // The program did what it should, and we did not.
  const int code = exit_code == 0 && !is_whole(outcome) ? kExitRunFailed : exit_code;
  report_outcome(options, run.collector.control, outcome, code, err);
  return code;
}

}  // namespace collect::ctl
