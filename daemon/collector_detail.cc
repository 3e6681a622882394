// Detail recording: who is meant, which functions are meant, and what each agent answered.
#include <algorithm>
#include <cstdio>

#include "daemon/collector.h"
#include "daemon/collector_call.h"
#include "daemon/collector_functions.h"
#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

wire::Command detail_command(const control::DetailOrder& order) {
  wire::Command command;
  wire::SetDetail* detail = command.mutable_set_detail();
  detail->set_mode(to_wire(order.mode));
  detail->set_duration_ns(order.duration_ns);
  detail->set_pre_roll_ns(order.pre_roll_ns);
  return command;
}

api::DetailOutcome detail_outcome_for(const ingest::AgentSnapshot& agent) {
  auto outcome = outcome_for<api::DetailOutcome>(agent);
  const api::Agent message = to_message(agent);
  outcome.set_session(message.session());
  outcome.set_detail(message.detail());
  return outcome;
}

std::string seconds_text(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.3g s", static_cast<double>(ns) / 1e9);
  return text;
}

// What of the pre-roll that was asked for there is not; empty: nothing.
std::string pre_roll_warning(const ingest::AgentSnapshot& agent, uint64_t asked_ns,
                             const wire::CommandResult& result) {
  if (asked_ns == 0) return "";
  if (agent.detail != ingest::DetailMode::kArmed) {
    return "there is no pre-roll: detail was not armed; ArmDetail keeps it from then on";
  }
  if (result.pre_roll_records() == 0)
    return "there is no pre-roll: nothing was kept since ArmDetail";
  const uint64_t kept_ns = result.at_ns() - std::min(result.pre_roll_from_ns(), result.at_ns());
  if (kept_ns >= asked_ns) return "";
  return "the pre-roll goes back " + seconds_text(kept_ns) + " of the " + seconds_text(asked_ns) +
         " that were asked for: the rings hold no more; start the agent with a larger one";
}

}  // namespace

struct Collector::DetailCall : OutcomeCall<api::DetailOutcome> {
  using OutcomeCall::OutcomeCall;
  control::DetailOrder order;
  FunctionPatterns patterns;
};

// What one of the agents is told.
struct Collector::DetailCommand {
  std::shared_ptr<DetailCall> call;
  ingest::AgentSnapshot agent;
  wire::Command command;

  void fail(const Error& error) const { call->fail(detail_outcome_for(agent), error); }
};

void Collector::set_detail(const control::DetailOrder& order,
                           control::Callback<std::vector<api::DetailOutcome>> done) {
  const auto targets = registry_.targets(order.target);
  Result<FunctionPatterns> patterns = FunctionPatterns::parse(order.functions);
  if (!targets.ok() || !patterns.ok()) {
    done(!targets.ok() ? targets.error() : patterns.error());
    return;
  }
  auto call = std::make_shared<DetailCall>(targets->size(), std::move(done));
  call->order = order;
  call->patterns = std::move(patterns).value();
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto command =
        std::make_shared<DetailCommand>(DetailCommand{call, agent, detail_command(order)});
    if (agent.state == ingest::AgentState::kDialing) {
      command->fail(not_there(agent));
    } else if (order.threads.empty()) {
      find_detail_functions(command);
    } else {
      find_detail_threads(command);
    }
  }
}

// An agent would take any number for a thread: whether it is one of its threads is checked here.
void Collector::find_detail_threads(const std::shared_ptr<DetailCommand>& command) {
  const auto on_threads = [this, command](Result<std::vector<storage::ThreadIdentity>> threads) {
    if (!threads.ok()) {
      command->fail(threads.error());
      return;
    }
    const auto places = storage::select_threads(command->call->order.threads, *threads);
    if (!places.ok()) {
      command->fail(places.error());
      return;
    }
    if (places->size() > wire::kMaxFilterThreads) {
      command->fail({Code::kLimit, "more threads are meant than an agent holds, at most " +
                                       std::to_string(wire::kMaxFilterThreads) +
                                       ": narrow the patterns"});
      return;
    }
    for (const size_t place : *places) {
      command->command.mutable_set_detail()->add_thread_ids(*(*threads)[place].thread_id);
    }
    find_detail_functions(command);
  };
  ingest_->threads(command->agent.process_id, on_threads);
}

void Collector::find_detail_functions(const std::shared_ptr<DetailCommand>& command) {
  if (command->call->patterns.empty()) {
    send_detail(command);
    return;
  }
  find_functions(
      command->agent,
      [this, command](const auto& modules) {
        return command->call->patterns.resolve(modules, naming_.symbolizer(), stopping_,
                                               wire::kMaxFilterFunctions);
      },
      [this, command](const Result<std::vector<uint64_t>>& matched) {
        if (!matched.ok()) {
          command->fail(matched.error());
          return;
        }
        for (const uint64_t id : *matched) {
          command->command.mutable_set_detail()->add_function_ids(id);
        }
        send_detail(command);
      });
}

void Collector::send_detail(const std::shared_ptr<DetailCommand>& command) {
  const auto on_answer = [command](Result<wire::CommandResult> result) {
    if (!result.ok() || !result->ok()) {
      command->fail(result.ok() ? refusal(*result) : result.error());
      return;
    }
    const wire::SetDetail& sent = command->command.set_detail();
    api::DetailOutcome outcome = detail_outcome_for(command->agent);
    outcome.set_detail(command->call->order.mode);
    outcome.set_effect_time_ns(result->at_ns());
    outcome.set_functions_matched(static_cast<uint32_t>(sent.function_ids_size()));
    outcome.set_threads_matched(static_cast<uint32_t>(sent.thread_ids_size()));
    outcome.set_pre_roll_records(result->pre_roll_records());
    outcome.set_pre_roll_start_time_ns(result->pre_roll_from_ns());
    const std::string warning = pre_roll_warning(command->agent, sent.pre_roll_ns(), *result);
    if (!warning.empty()) outcome.add_warnings(warning);
    command->call->add(std::move(outcome));
  };
  ingest_->command(command->agent.process_id, command->command, on_answer);
}

}  // namespace collect::daemon
