#include "daemon/collector/detail/filter_control.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>

#include "daemon/collector/agents/outcomes.h"
#include "daemon/collector/detail/function_patterns.h"
#include "daemon/symbolize/limits.h"
#include "formats/core/text/printable.h"
#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

wire::SetFunctionFilter::Mode mode_of(const FunctionPatterns& only,
                                      const FunctionPatterns& except) {
  if (!only.empty()) return wire::SetFunctionFilter::ONLY;
  return except.empty() ? wire::SetFunctionFilter::EVERYTHING : wire::SetFunctionFilter::ALL_BUT;
}

// Both sorted.
std::vector<uint64_t> but(const std::vector<uint64_t>& with, const std::vector<uint64_t>& without) {
  std::vector<uint64_t> ids;
  std::set_difference(with.begin(), with.end(), without.begin(), without.end(),
                      std::back_inserter(ids));
  return ids;
}

}  // namespace

struct FilterControl::Call : OutcomeCall<api::FunctionFilterOutcome> {
  using OutcomeCall::OutcomeCall;
  api::SetFunctionFilterRequest request;
  FunctionPatterns only;
  FunctionPatterns except;
  wire::SetFunctionFilter::Mode mode{};

  // The ids that go with the mode.
  Result<std::vector<uint64_t>> resolve(const FunctionSearch& functions,
                                        const FunctionSearch::Modules& modules) const {
    if (only.empty()) return functions.resolve(except, modules, wire::kMaxFunctionFilter);
    const auto with = functions.resolve(only, modules, wire::kMaxFunctionFilter);
    if (!with.ok()) return with;
    const auto without = functions.resolve(except, modules, symbolize::kMaxSymbols);
    if (!without.ok()) return without;
    return but(*with, *without);
  }
};

// The filter for one of the agents.
struct FilterControl::Task {
  ingest::AgentSnapshot agent;
  wire::SetFunctionFilter::Mode mode{};
  std::vector<uint64_t> ids;
  std::function<void(const Result<wire::CommandResult>&)> done;  // of the last part, or an error
};

FilterControl::FilterControl(const Registry& registry, ingest::Ingest& ingest,
                             FunctionSearch& functions, control::Methods& methods)
    : registry_(registry), ingest_(ingest), functions_(functions) {
  methods.serve<api::SetFunctionFilterRequest, api::SetFunctionFilterResponse>(
      [this](const auto& request, auto done) { set(request, std::move(done)); });
}

void FilterControl::set(const api::SetFunctionFilterRequest& request,
                        control::Callback<api::SetFunctionFilterResponse> done) {
  const auto targets = registry_.targets(request.target());
  auto only = FunctionPatterns::parse({request.only().begin(), request.only().end()});
  auto except = FunctionPatterns::parse({request.except().begin(), request.except().end()});
  if (!targets.ok() || !only.ok() || !except.ok()) {
    done(!targets.ok() ? targets.error() : !only.ok() ? only.error() : except.error());
    return;
  }
  auto call = std::make_shared<Call>(targets->size(), outcomes_into(std::move(done)));
  call->request = request;
  call->mode = mode_of(*only, *except);
  call->only = std::move(only).value();
  call->except = std::move(except).value();
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto on_found = [this, call, agent](Result<std::vector<uint64_t>> ids) {
      if (ids.ok()) {
        send(call, agent, std::move(ids).value());
      } else {
        call->fail(outcome_for<api::FunctionFilterOutcome>(agent), ids.error());
      }
    };
    if (agent.state == ingest::AgentState::kDialing) {
      call->fail(outcome_for<api::FunctionFilterOutcome>(agent), not_there(agent));
    } else if (call->mode == wire::SetFunctionFilter::EVERYTHING) {
      on_found(std::vector<uint64_t>());
    } else {
      functions_.find(
          agent, [this, call](const auto& modules) { return call->resolve(functions_, modules); },
          on_found);
    }
  }
}

void FilterControl::send(const std::shared_ptr<Call>& call, const ingest::AgentSnapshot& agent,
                         std::vector<uint64_t> ids) {
  const size_t count = ids.size();
  const auto on_done = [this, call, agent, count](const Result<wire::CommandResult>& result) {
    api::FunctionFilterOutcome outcome = outcome_for<api::FunctionFilterOutcome>(agent);
    if (!result.ok() || !result->ok()) {
      call->fail(std::move(outcome), result.ok() ? refusal(*result) : result.error());
      return;
    }
    const api::SetFunctionFilterRequest& request = call->request;
    ingest_.note_function_filter(agent.process_id,
                                 {result->at_ns(),
                                  {request.only().begin(), request.only().end()},
                                  {request.except().begin(), request.except().end()},
                                  count});
    outcome.set_effect_time_ns(result->at_ns());
    outcome.set_functions_matched(static_cast<uint32_t>(count));
    outcome.set_functions_patched(result->functions_patched());
    call->add(std::move(outcome));
  };
  send_part(std::make_shared<Task>(Task{agent, call->mode, std::move(ids), on_done}), 0);
}

// Each part is sent when the agent has taken the one before.
void FilterControl::send_part(const std::shared_ptr<Task>& task, uint32_t part) {
  const size_t begin = size_t{part} * wire::kMaxFilterFunctions;
  const size_t end = std::min(begin + wire::kMaxFilterFunctions, task->ids.size());
  const bool last = end == task->ids.size();
  wire::Command command;
  wire::SetFunctionFilter& filter = *command.mutable_set_function_filter();
  filter.set_mode(task->mode);
  filter.set_part(part);
  filter.set_last(last);
  for (size_t at = begin; at < end; ++at) filter.add_function_ids(task->ids[at]);
  const auto on_answer = [this, task, part, last](Result<wire::CommandResult> result) {
    if (last || !result.ok() || !result->ok()) {
      task->done(result);
    } else {
      send_part(task, part + 1);
    }
  };
  ingest_.command(task->agent.process_id, std::move(command), on_answer);
}

void FilterControl::record_nothing(const ingest::AgentSnapshot& agent,
                                   std::function<void(const Status&)> done) {
  const auto task = std::make_shared<Task>();
  task->agent = agent;
  task->mode = wire::SetFunctionFilter::ONLY;
  task->done = [done = std::move(done)](const Result<wire::CommandResult>& result) {
    done(!result.ok() ? result.error() : result->ok() ? Status() : Status(refusal(*result)));
  };
  send_part(task, 0);
}

void FilterControl::start_with(const ingest::AgentSnapshot& agent, ingest::FilterRequest wanted) {
  const bool may_wait = start_filters_waiting_.fetch_add(1) < kMaxStartFilters;
  const std::shared_ptr<void> place(nullptr,
                                    [this](void*) { start_filters_waiting_.fetch_sub(1); });
  const auto start = [this, agent, wanted, place](const Status& may_look) {
    ingest::StartFilter outcome;
    auto task = std::make_shared<Task>();
    task->agent = agent;
    Result<std::vector<uint64_t>> ids = std::vector<uint64_t>();
    if (may_look.ok()) {
      ids = start_ids(wanted, task->mode, outcome);
    } else {
      ids = may_look.error();
    }
    if (functions_.is_stopping()) return;
    if (ids.ok()) {
      task->ids = std::move(ids).value();
    } else {
      // What cannot be looked up is not recorded: no one asked for everything.
      task->mode = wire::SetFunctionFilter::ONLY;
      outcome.error = ids.error().message;
      spdlog::warn("agents/{} records nothing: {}", agent.id, printable(outcome.error));
    }
    outcome.functions = task->ids.size();
    task->done = [id = agent.id](const Result<wire::CommandResult>& result) {
      if (result.ok() && result->ok()) return;
      spdlog::warn("agents/{} did not take its function filter: {}", id,
                   printable(result.ok() ? result->error() : result.error().message));
    };
    // To the peer's thread, as the command behind it.
    ingest_.note_start_filter(agent.process_id, outcome,
                              {0, wanted.only, wanted.except, task->ids.size()});
    send_part(task, 0);
  };
  const Status may_look =
      may_wait ? Status() : Error{Code::kLimit, "too many processes started at once"};
  start_filters_.post([start, may_look] { start(may_look); }, start);
}

Result<std::vector<uint64_t>> FilterControl::start_ids(const ingest::FilterRequest& wanted,
                                                       wire::SetFunctionFilter::Mode& mode,
                                                       ingest::StartFilter& outcome) const {
  const auto only = FunctionPatterns::parse(wanted.only);
  if (!only.ok()) return only.error();
  const auto except = FunctionPatterns::parse(wanted.except);
  if (!except.ok()) return except.error();
  mode = mode_of(*only, *except);
  const auto match = [&](const FunctionPatterns& patterns,
                         size_t most) -> Result<std::vector<uint64_t>> {
    auto matched = functions_.match(patterns, wanted.modules, most);
    if (!matched.ok()) return matched.error();
    outcome.unmatched.insert(outcome.unmatched.end(), matched->unmatched.begin(),
                             matched->unmatched.end());
    return std::move(matched->ids);
  };
  const auto without = match(
      *except, only->empty() ? size_t{wire::kMaxFunctionFilter} : size_t{symbolize::kMaxSymbols});
  if (!without.ok() || only->empty()) return without;
  const auto with = match(*only, wire::kMaxFunctionFilter);
  if (!with.ok()) return with;
  return but(*with, *without);
}

}  // namespace collect::daemon
