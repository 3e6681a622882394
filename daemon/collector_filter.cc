// Which functions are recorded at all: patterns become ids, ids become commands, part after part.
#include <algorithm>
#include <iterator>

#include "daemon/collector.h"
#include "daemon/collector_call.h"
#include "daemon/collector_functions.h"
#include "daemon/symbolize/limits.h"
#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

api::FunctionFilterOutcome outcome_for(const ingest::AgentSnapshot& agent) {
  api::FunctionFilterOutcome outcome;
  outcome.set_agent(agent_name(agent.id));
  return outcome;
}

}  // namespace

struct Collector::FilterCall : OutcomeCall<api::SetFunctionFilterResponse> {
  using OutcomeCall::OutcomeCall;
  api::SetFunctionFilterRequest request;
  FunctionPatterns only;
  FunctionPatterns except;
  wire::SetFunctionFilter::Mode mode{};

  // The ids that go with the mode.
  Result<std::vector<uint64_t>> resolve(const std::vector<storage::ModuleInfo>& modules,
                                        const symbolize::Symbolizer& symbolizer,
                                        const std::atomic<bool>& stop) const {
    if (only.empty()) return except.resolve(modules, symbolizer, stop, wire::kMaxFunctionFilter);
    const auto with = only.resolve(modules, symbolizer, stop, wire::kMaxFunctionFilter);
    if (!with.ok()) return with;
    const auto without = except.resolve(modules, symbolizer, stop, symbolize::kMaxElfSymbols);
    if (!without.ok()) return without;
    std::vector<uint64_t> ids;
    std::set_difference(with->begin(), with->end(), without->begin(), without->end(),
                        std::back_inserter(ids));
    return ids;
  }
};

// What one of the agents is told.
struct Collector::FilterOrder {
  std::shared_ptr<FilterCall> call;
  ingest::AgentSnapshot agent;
  std::vector<uint64_t> ids;
};

void Collector::set_function_filter(const api::SetFunctionFilterRequest& request,
                                    control::Callback<api::SetFunctionFilterResponse> done) {
  const auto targets = registry_.targets(request.target());
  auto only = FunctionPatterns::parse({request.only().begin(), request.only().end()});
  auto except = FunctionPatterns::parse({request.except().begin(), request.except().end()});
  if (!targets.ok() || !only.ok() || !except.ok()) {
    done(!targets.ok() ? targets.error() : !only.ok() ? only.error() : except.error());
    return;
  }
  auto call = std::make_shared<FilterCall>(targets->size(), std::move(done));
  call->request = request;
  call->mode = !only->empty()     ? wire::SetFunctionFilter::ONLY
               : !except->empty() ? wire::SetFunctionFilter::ALL_BUT
                                  : wire::SetFunctionFilter::EVERYTHING;
  call->only = std::move(only).value();
  call->except = std::move(except).value();
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto send = [this, call, agent](Result<std::vector<uint64_t>> ids) {
      if (ids.ok()) {
        send_filter_part(
            std::make_shared<FilterOrder>(FilterOrder{call, agent, std::move(ids).value()}), 0);
      } else {
        call->fail(outcome_for(agent), ids.error().message);
      }
    };
    if (agent.state == ingest::AgentState::kDialing) {
      call->fail(outcome_for(agent), "does not answer yet: " + agent.status);
    } else if (call->mode == wire::SetFunctionFilter::EVERYTHING) {
      send(std::vector<uint64_t>());
    } else {
      find_functions(
          agent,
          [this, call](const auto& modules) {
            return call->resolve(modules, naming_.symbolizer(), stopping_);
          },
          send);
    }
  }
}

// Each part is sent when the agent has taken the one before.
void Collector::send_filter_part(const std::shared_ptr<FilterOrder>& order, uint32_t part) {
  const size_t begin = size_t{part} * wire::kMaxFilterFunctions;
  const size_t end = std::min(begin + wire::kMaxFilterFunctions, order->ids.size());
  const bool last = end == order->ids.size();
  wire::Command command;
  wire::SetFunctionFilter& filter = *command.mutable_set_function_filter();
  filter.set_mode(order->call->mode);
  filter.set_part(part);
  filter.set_last(last);
  for (size_t at = begin; at < end; ++at) filter.add_function_ids(order->ids[at]);
  const auto on_answer = [this, order, part, last](Result<wire::CommandResult> result) {
    api::FunctionFilterOutcome outcome = outcome_for(order->agent);
    if (!result.ok() || !result->ok()) {
      order->call->fail(std::move(outcome), result.ok() ? result->error() : result.error().message);
      return;
    }
    if (!last) {
      send_filter_part(order, part + 1);
      return;
    }
    const api::SetFunctionFilterRequest& request = order->call->request;
    ingest_->note_function_filter(order->agent.process_id,
                                  {result->at_ns(),
                                   {request.only().begin(), request.only().end()},
                                   {request.except().begin(), request.except().end()},
                                   order->ids.size()});
    outcome.set_ok(true);
    outcome.set_at_ns(result->at_ns());
    outcome.set_functions_matched(static_cast<uint32_t>(order->ids.size()));
    outcome.set_functions_patched(result->functions_patched());
    order->call->add(std::move(outcome));
  };
  ingest_->command(order->agent.process_id, std::move(command), on_answer);
}

}  // namespace collect::daemon
