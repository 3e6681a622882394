#include "daemon/ctl/record/processes/attach_process.h"

#include <fmt/core.h>
#include <unistd.h>

#include <chrono>
#include <sstream>
#include <utility>

#include "daemon/ctl/control/connection/client.h"
#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/record/processes/local_process.h"
#include "daemon/ctl/record/processes/other_user.h"
#include "daemon/ctl/record/program/program_paths.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "daemon/ctl/record/run/dynamic_plans.h"
#include "daemon/ctl/terminal/json.h"
#include "daemon/inject/injector.h"

namespace collect::ctl {
namespace {

using End = AppRecording::End;

// "nginx (process 812)"
std::string name_of(const inject::Target& target) {
  return fmt::format("{} (process {})", target.name, target.pid);
}

// The agent's settings: the caller's own COLLECT_* variables, and the options.
Result<std::vector<std::string>> agent_variables(const AgentSettings& agent) {
  std::vector<std::string> variables;
  for (const std::string& entry : own_environment()) {
    if (entry.starts_with("COLLECT_")) variables.push_back(entry);
  }
  // The process was not started for a recording: the agent starts no process of its own beside it.
  AgentSettings settings = agent;
  settings.drain = "thread";
  auto environment = agent_environment(variables, settings);
  if (!environment.ok()) return environment.error();
  std::erase_if(*environment,
                [](const std::string& entry) { return !entry.starts_with("COLLECT_"); });
  return environment;
}

void announce(const inject::AttachOutcome& attached, const patch::ModulePlans& plans,
              std::ostream& err) {
  for (const std::string& sentence : plans.left_out) {
    err << "collectctl: " << printable_sentence(sentence) << "\n";
  }
  err << "collectctl: records " << counted(plans.functions, "function") << " of "
      << (plans.modules.size() == 1 ? printable(plans.modules.front())
                                    : counted(plans.modules.size(), "module"));
  if (attached.jumps != 0) {
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(attached.stopped);
    err << "; " << counted(attached.threads, "thread") << " stood still for "
        << static_cast<double>(micros.count()) / 1000 << " ms";
  }
  err << "\n";
}

// Its code stays as it is, and calls nothing any more. As it is now.
Result<inject::Target> let_go(pid_t pid, const std::string& library) {
  auto target = inject::look_at_target(pid);
  if (!target.ok()) return target;
  const auto left = inject::attach(*target, {library, {}, patch::kAttachStop, nullptr});
  if (!left.ok()) return left.error();
  return target;
}

std::string end_text(End end) {
  switch (end) {
    case End::kAppEnded:
      return "has ended";
    case End::kRecordingEnded:
      return "continues untraced: the recording ended";
    case End::kInterrupted:
      return "continues untraced";
    case End::kAgentLost:
    case End::kNoAgent:
    case End::kCollectorLost:
      break;
  }
  return "continues; the recording failed";
}

}  // namespace

int attach_process(const ProcessOptions& options, std::ostream& err) {
  JobSignals signals;
  const auto target = inject::look_at_target(options.pid);
  if (!target.ok()) return run_failed(options, err, target.error());
  AgentSettings agent = options.agent;
  const Result<std::string> library = find_agent_library();
  if (!library.ok()) return run_failed(options, err, library.error());
  agent.library = *library;
  agent.tag = new_run_tag();
  const auto plans = patch::plans_of_modules(
      target->modules,
      options.dynamic.empty() ? std::vector<std::string>{patch::kProgramItself} : options.dynamic);
  if (!plans.ok()) return run_failed(options, err, plans.error());
  agent.plans = plans->folder.path();
  CollectorRequest wanted{options.root, options.control, Phones::kNone};
  std::string token;
  if (target->uid != ::geteuid()) {
    const auto shared = share_with(target->uid, plans->folder);
    if (!shared.ok()) return run_failed(options, err, shared.error());
    wanted.token_file = shared->collector_token;
    token = shared->agent_token;
  }
  Result<RunCollector> collector = find_collector(wanted, signals);
  if (!collector.ok()) return run_failed(options, err, collector.error());
  if (!collector->embedded) token.clear();  // it has one of its own, or none
  agent.connect = collector->ingest;
  auto variables = agent_variables(agent);
  if (!variables.ok()) return run_failed(options, err, variables.error());
  if (!token.empty()) variables->push_back("COLLECT_TOKEN_FILE=" + token);
  const bool speaks = !options.quiet && !options.json;
  if (speaks) announce(*collector, agent.start_idle, err);
  Interruption interruption(signals);
  const auto attached = inject::attach(*target, {*library, *variables, patch::kAttachStart,
                                                 [&interruption] { return interruption.look(); }});
  if (!attached.ok()) {
    const std::string refusal = " cannot be attached to: " + attached.error().message;
    return run_failed(options, err, {attached.error().code, name_of(*target) + refusal});
  }
  if (speaks) announce(*attached, *plans, err);

  Client client(collector->control);
  SealWait wait;
  wait.tag = agent.tag;
  LocalProcess process(options.pid);
  std::ostringstream discarded;
  AppRecording recording(process, client, wait, speaks ? err : discarded);
  recording.set_limits(agent);
  const End end = recording.follow(interruption);
  RunSessions followed = recording.finish(end, signals);
  if (end != End::kAppEnded && !process.has_ended()) {
    const auto left = let_go(options.pid, *library);
    if (!left.ok() && left.error().code != Code::kNotFound) {
      followed.trouble +=
          (followed.trouble.empty() ? "" : "; ") +
          ("the agent in the process was not switched off: " + left.error().message);
    }
  }
  if (!followed.agent_seen && followed.trouble.empty()) {
    followed.trouble = "the agent did not reach the collector: " + attached->message;
  }
  RunOutcome outcome;
  outcome.app_ending = fmt::format("(process {}) {}", options.pid, end_text(end));
  outcome.dynamic = outcome.attached = true;
  outcome.not_covered = plans->not_asked_for;
  return conclude(options, target->name, *collector, std::move(outcome), std::move(followed),
                  signals, err);
}

bool has_agent(pid_t pid) {
  const auto target = inject::look_at_target(pid);
  const Result<std::string> library = find_agent_library();
  return target.ok() && library.ok() && target->has(*library);
}

int detach_process(const ProcessOptions& options, std::ostream& out, std::ostream& err) {
  const Result<std::string> library = find_agent_library();
  if (!library.ok()) return run_failed(options, err, library.error());
  const auto left = let_go(options.pid, *library);
  if (!left.ok()) return run_failed(options, err, left.error());
  if (options.json) {
    Json document = json_document();
    document["pid"] = options.pid;
    out << json_line(document);
  } else {
    out << name_of(*left) << " continues untraced\n";
  }
  return 0;
}

}  // namespace collect::ctl
