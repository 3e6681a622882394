#include "daemon/ctl/record/run/run_command.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "daemon/ctl/control/client.h"
#include "daemon/ctl/control/commands.h"
#include "daemon/ctl/control/text.h"
#include "daemon/ctl/look/open_page.h"
#include "daemon/ctl/record/run/dynamic_plans.h"
#include "daemon/ctl/record/run/job.h"
#include "daemon/ctl/record/run/module_list.h"
#include "daemon/ctl/record/run/newest_session.h"
#include "daemon/ctl/record/run/preload_check.h"
#include "daemon/ctl/record/run/program_paths.h"
#include "daemon/ctl/record/run/run_collector.h"
#include "daemon/ctl/record/run/run_processes.h"
#include "daemon/ctl/record/run/run_sessions.h"
#include "daemon/ctl/record/run/run_summary.h"
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

// Of the patterns that match nothing, so many are compared with the names that there are.
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

// Every session of the run on one page. That it cannot be shown is said, and no failure of the run.
void open_sessions(const std::vector<api::Session>& sessions, std::ostream& err) {
  OpenOptions open;
  for (const api::Session& session : sessions) {
    if (session.events() != 0) open.page.inputs.push_back(session.path());
  }
  if (!open.page.inputs.empty()) open_page(open, err, err);
}

}  // namespace

int run_program(const RunOptions& options, std::ostream& err) {
  const auto failed_before_start = [&](const Error& error, int code) {
    failed(err, error, options.json);
    return code;
  };
  JobSignals signals;
  const Result<std::string> program = find_program(options.command.front());
  if (!program.ok()) return failed_before_start(program.error(), code_for(program.error()));
  AgentSettings agent = options.agent;
  Result<std::string> library = find_agent_library();
  if (!library.ok()) return failed_before_start(library.error(), kExitRunFailed);
  agent.library = std::move(*library);
  const std::string tag_of_caller = given_tag(own_environment());
  agent.tag = tag_of_caller.empty() ? new_run_tag() : tag_of_caller;
  for_each_unknown_variable(environ, [&err](const UnknownVariable& unknown) {
    err << "collectctl: ";
    put_unknown_variable(
        unknown, [&err](std::string_view words) { err << words; },
        [](std::string_view name) { return printable(name); });
    err << "\n";
  });
  std::optional<patch::ModulePlans> plans;
  if (!options.dynamic.empty()) {
    auto made = make_dynamic_plans(*program, options.dynamic, own_environment());
    if (!made.ok()) return failed_before_start(made.error(), kExitRunFailed);
    plans.emplace(std::move(*made));
    agent.plans = plans->folder.path();
    if (!options.quiet && !options.json) announce(*plans, *program, started_program(*program), err);
  }
  auto processes = RunProcesses::make();
  if (!processes.ok()) return failed_before_start(processes.error(), kExitRunFailed);
  CollectorRequest wanted{options.root, options.control, Phones::kNone};
  wanted.web = options.web;
  wanted.guest_token_file = (*processes)->key_file();
  Result<RunCollector> collector = find_collector(wanted, signals);
  if (!collector.ok()) return failed_before_start(collector.error(), kExitRunFailed);
  agent.connect = collector->ingest;
  agent.run = (*processes)->directory();
  // One that ran already has rules of its own, and has not heard of this run.
  if (collector->embedded) agent.run_key = (*processes)->key();
  Result<std::set<std::string>> before = std::set<std::string>();
  if (!tag_of_caller.empty()) before = names_with_tag(collector->control, tag_of_caller);
  if (!before.ok()) return failed_before_start(before.error(), kExitRunFailed);
  // A caller's own COLLECT_CHILD_OF names the parent of collectctl, and means the same.
  if (options.program_only || records_one_process(own_environment()))
    agent.only_child_of = ::getpid();
  if (agent.max_time) agent.max_time_since_ns = boottime_ns();
  const auto environment = agent_environment(own_environment(), agent);
  if (!environment.ok()) return failed_before_start(environment.error(), kExitRunFailed);
  const bool idle = starts_idle(*environment);
  if (!options.quiet && !options.json) announce(*collector, idle, err);

  const Result<pid_t> child = start_program(*program, options.command, *environment, signals);
  if (!child.ok()) return failed_before_start(child.error(), code_for(child.error()));
  // Connected while the program runs, so that no one waits for that afterwards; what is wrong with
  // the connection shows then.
  auto client = std::make_unique<Client>(collector->control);
  // Without a thread for it, it is connected later.
  auto connecting = start_thread(
      "connecting", [&client] { (void)contain([&] { (void)client->stats(kConnectBound); }); });
  (*processes)->set_program(*child);
  RunWatch watch(**processes, *collector, options.quiet || options.json ? nullptr : &err);
  const int exit_code = wait_for_program(*child, signals, [&watch] { watch.look(); });
  if (connecting.ok()) connecting->join();

  SealWait wait{agent.tag,
                "",
                "",
                *before,
                collector->embedded == nullptr,
                drains_by_process(*environment),
                [&processes](pid_t pid) { return (*processes)->lives(pid); }};
  wait.any_ships = [&] {
    watch.look();
    return (*processes)->any_ships(collector->embedded != nullptr);
  };
  watch.look();
  RunOutcome outcome = finish(*client, wait, signals, err);
  client.reset();  // a collector that stops waits for it
  outcome.outlived = wait.agent_outlives;
  outcome.waits = waits_when_full(*environment);
  outcome.timed = ends_by_time(*environment);
  outcome.filtered = filters_functions(*environment);
  outcome.rated = limits_rates(*environment);
  outcome.dynamic = plans.has_value();
  if (plans) outcome.not_covered = plans->not_asked_for;
  outcome.one_process = records_one_process(*environment);
  if (idle) outcome.start_command = start_command(*collector);
  outcome.no_preload = why_no_preload(*program);
  find_nearest(outcome);
  outcome.program = options.command.front();
  outcome.exit_code = exit_code;
  watch.look();
  if (collector->embedded) {
    (*processes)->end_run();
    add_trouble(outcome, watch.ending());
    if (Status stopped = collector->embedded->stop(signals); !stopped.ok()) {
      add_trouble(outcome, stopped.error().message);
    }
  }
  account(**processes, started_program(*program), outcome);
  std::ostringstream unsaid;  // with JSON the error stream holds nothing else
  note_newest_session(outcome.sessions, collector->control, options.json ? unsaid : err);
  const auto* const largest = largest_session(outcome.sessions);
  if (outcome.rated && largest != nullptr) outcome.switched_off = switched_off(largest->path());
  if (options.json) {
    err << run_summary_json(outcome);
  } else if (!options.quiet || !is_whole(outcome) || largest == nullptr) {
    if (largest != nullptr) outcome.top = top_functions(*largest);
    err << run_summary_text(outcome);
  }
  if (options.open) open_sessions(outcome.sessions, err);
  err.flush();
  // The program did what it should, and we did not.
  return exit_code == 0 && !is_whole(outcome) ? kExitRunFailed : exit_code;
}

}  // namespace collect::ctl
