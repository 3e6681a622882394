#include "daemon/collector/detail/detail_control.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "daemon/collector/agents/outcomes.h"
#include "daemon/collector/detail/function_patterns.h"
#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

wire::Command message_of(const control::DetailCommand& command) {
  wire::Command message;
  wire::SetDetail* detail = message.mutable_set_detail();
  detail->set_mode(to_wire(command.mode));
  detail->set_duration_ns(command.duration_ns);
  detail->set_pre_roll_ns(command.pre_roll_ns);
  return message;
}

api::ListThreadsResponse thread_list(const std::string& agent,
                                     const std::vector<storage::ThreadIdentity>& threads) {
  api::ListThreadsResponse response;
  response.set_agent(agent);
  for (const storage::ThreadIdentity& thread : threads) {
    api::AgentThread* const shown = response.add_threads();
    shown->set_thread_id(thread.thread_id.value_or(0));
    shown->set_name(utf8_text(thread.name));
  }
  return response;
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
  return fmt::format(
      "the pre-roll goes back {} of the {} that were asked for: the rings hold no more; start the "
      "agent with a larger one",
      seconds_text(kept_ns), seconds_text(asked_ns));
}

}  // namespace

struct DetailControl::Call : OutcomeCall<api::DetailOutcome> {
  using OutcomeCall::OutcomeCall;
  control::DetailCommand wanted;
  FunctionPatterns patterns;
};

// The command for one of the agents.
struct DetailControl::Command {
  std::shared_ptr<Call> call;
  ingest::AgentSnapshot agent;
  wire::Command command;

  void fail(const Error& error) const { call->fail(detail_outcome_for(agent), error); }
};

DetailControl::DetailControl(const Registry& registry, ingest::Ingest& ingest,
                             FunctionSearch& functions, control::Methods& methods)
    : registry_(registry), ingest_(ingest), functions_(functions) {
  methods.serve<control::DetailCommand, std::vector<api::DetailOutcome>>(
      [this](const auto& wanted, auto done) { set(wanted, std::move(done)); });
  methods.serve<api::ListThreadsRequest, api::ListThreadsResponse>([this](const auto& request,
                                                                          auto done) {
    const auto agent = registry_.agent(request.name());
    if (!agent.ok()) {
      done(agent.error());
      return;
    }
    ingest_.threads(agent->process_id,
                    [name = agent_name(agent->id), done = std::move(done)](const auto& threads) {
                      if (threads.ok()) {
                        done(thread_list(name, *threads));
                      } else {
                        done(threads.error());
                      }
                    });
  });
}

void DetailControl::set(const control::DetailCommand& wanted,
                        control::Callback<std::vector<api::DetailOutcome>> done) {
  const auto targets = registry_.targets(wanted.target);
  Result<FunctionPatterns> patterns = FunctionPatterns::parse(wanted.functions);
  if (!targets.ok() || !patterns.ok()) {
    done(!targets.ok() ? targets.error() : patterns.error());
    return;
  }
  auto call = std::make_shared<Call>(targets->size(), std::move(done));
  call->wanted = wanted;
  call->patterns = std::move(patterns).value();
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto command = std::make_shared<Command>(Command{call, agent, message_of(wanted)});
    if (agent.state == ingest::AgentState::kDialing) {
      command->fail(not_there(agent));
    } else if (wanted.threads.empty()) {
      find_functions(command);
    } else {
      find_threads(command);
    }
  }
}

// An agent would take any number for a thread: whether it is one of its threads is checked here.
void DetailControl::find_threads(const std::shared_ptr<Command>& command) {
  const auto on_threads = [this, command](Result<std::vector<storage::ThreadIdentity>> threads) {
    if (!threads.ok()) {
      command->fail(threads.error());
      return;
    }
    const auto places = storage::select_threads(command->call->wanted.threads, *threads);
    if (!places.ok()) {
      command->fail(places.error());
      return;
    }
    if (places->size() > wire::kMaxFilterThreads) {
      command->fail(
          {Code::kLimit,
           fmt::format("more threads match than an agent holds, at most {}: narrow the patterns",
                       wire::kMaxFilterThreads)});
      return;
    }
    for (const size_t place : *places) {
      command->command.mutable_set_detail()->add_thread_ids(*(*threads)[place].thread_id);
    }
    find_functions(command);
  };
  ingest_.threads(command->agent.process_id, on_threads);
}

void DetailControl::find_functions(const std::shared_ptr<Command>& command) {
  if (command->call->patterns.empty()) {
    send(command);
    return;
  }
  functions_.find(
      command->agent,
      [this, command](const auto& modules) {
        return functions_.resolve(command->call->patterns, modules, wire::kMaxFilterFunctions);
      },
      [this, command](const Result<std::vector<uint64_t>>& matched) {
        if (!matched.ok()) {
          command->fail(matched.error());
          return;
        }
        for (const uint64_t id : *matched) {
          command->command.mutable_set_detail()->add_function_ids(id);
        }
        send(command);
      });
}

void DetailControl::send(const std::shared_ptr<Command>& command) {
  const auto on_answer = [command](Result<wire::CommandResult> result) {
    if (!result.ok() || !result->ok()) {
      command->fail(result.ok() ? refusal(*result) : result.error());
      return;
    }
    const wire::SetDetail& sent = command->command.set_detail();
    api::DetailOutcome outcome = detail_outcome_for(command->agent);
    outcome.set_detail(command->call->wanted.mode);
    outcome.set_effect_time_ns(result->at_ns());
    outcome.set_functions_matched(static_cast<uint32_t>(sent.function_ids_size()));
    outcome.set_threads_matched(static_cast<uint32_t>(sent.thread_ids_size()));
    outcome.set_pre_roll_records(result->pre_roll_records());
    outcome.set_pre_roll_start_time_ns(result->pre_roll_from_ns());
    const std::string warning = pre_roll_warning(command->agent, sent.pre_roll_ns(), *result);
    if (!warning.empty()) outcome.add_warnings(warning);
    command->call->add(std::move(outcome));
  };
  ingest_.command(command->agent.process_id, command->command, on_answer);
}

}  // namespace collect::daemon
