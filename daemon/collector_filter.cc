// Which functions are recorded at all: patterns become ids, ids become commands, part after part.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/post.hpp>
#include <iterator>

#include "daemon/collector.h"
#include "daemon/collector_call.h"
#include "daemon/collector_functions.h"
#include "daemon/symbolize/limits.h"
#include "formats/core/printable.h"
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

struct Collector::FilterCall : OutcomeCall<api::FunctionFilterOutcome> {
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
    return but(*with, *without);
  }
};

// What one of the agents is told.
struct Collector::FilterOrder {
  ingest::AgentSnapshot agent;
  wire::SetFunctionFilter::Mode mode{};
  std::vector<uint64_t> ids;
  std::function<void(const Result<wire::CommandResult>&)> done;  // of the last part, or an error
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
  auto call = std::make_shared<FilterCall>(targets->size(), outcomes_into(std::move(done)));
  call->request = request;
  call->mode = mode_of(*only, *except);
  call->only = std::move(only).value();
  call->except = std::move(except).value();
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto send = [this, call, agent](Result<std::vector<uint64_t>> ids) {
      if (ids.ok()) {
        send_filter(call, agent, std::move(ids).value());
      } else {
        call->fail(outcome_for<api::FunctionFilterOutcome>(agent), ids.error());
      }
    };
    if (agent.state == ingest::AgentState::kDialing) {
      call->fail(outcome_for<api::FunctionFilterOutcome>(agent), not_there(agent));
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

void Collector::send_filter(const std::shared_ptr<FilterCall>& call,
                            const ingest::AgentSnapshot& agent, std::vector<uint64_t> ids) {
  const size_t count = ids.size();
  const auto on_done = [this, call, agent, count](const Result<wire::CommandResult>& result) {
    api::FunctionFilterOutcome outcome = outcome_for<api::FunctionFilterOutcome>(agent);
    if (!result.ok() || !result->ok()) {
      call->fail(std::move(outcome), result.ok() ? refusal(*result) : result.error());
      return;
    }
    const api::SetFunctionFilterRequest& request = call->request;
    ingest_->note_function_filter(agent.process_id,
                                  {result->at_ns(),
                                   {request.only().begin(), request.only().end()},
                                   {request.except().begin(), request.except().end()},
                                   count});
    outcome.set_effect_time_ns(result->at_ns());
    outcome.set_functions_matched(static_cast<uint32_t>(count));
    outcome.set_functions_patched(result->functions_patched());
    call->add(std::move(outcome));
  };
  send_filter_part(
      std::make_shared<FilterOrder>(FilterOrder{agent, call->mode, std::move(ids), on_done}), 0);
}

// Each part is sent when the agent has taken the one before.
void Collector::send_filter_part(const std::shared_ptr<FilterOrder>& order, uint32_t part) {
  const size_t begin = size_t{part} * wire::kMaxFilterFunctions;
  const size_t end = std::min(begin + wire::kMaxFilterFunctions, order->ids.size());
  const bool last = end == order->ids.size();
  wire::Command command;
  wire::SetFunctionFilter& filter = *command.mutable_set_function_filter();
  filter.set_mode(order->mode);
  filter.set_part(part);
  filter.set_last(last);
  for (size_t at = begin; at < end; ++at) filter.add_function_ids(order->ids[at]);
  const auto on_answer = [this, order, part, last](Result<wire::CommandResult> result) {
    if (last || !result.ok() || !result->ok()) {
      order->done(result);
    } else {
      send_filter_part(order, part + 1);
    }
  };
  ingest_->command(order->agent.process_id, std::move(command), on_answer);
}

void Collector::record_nothing(const ingest::AgentSnapshot& agent,
                               std::function<void(const Status&)> done) {
  const auto order = std::make_shared<FilterOrder>();
  order->agent = agent;
  order->mode = wire::SetFunctionFilter::ONLY;
  order->done = [done = std::move(done)](const Result<wire::CommandResult>& result) {
    done(!result.ok() ? result.error() : result->ok() ? Status() : Status(refusal(*result)));
  };
  send_filter_part(order, 0);
}

// An agent that was started with patterns. Unlike those of set_function_filter they are meant for
// whatever processes come: one that matches nothing here is no error here, and is told on.
void Collector::filter_wanted(const ingest::AgentSnapshot& agent, ingest::FilterWish wish) {
  const bool has_place = start_filters_waiting_.fetch_add(1) < kMaxStartFilters;
  asio::post(start_filters_, [this, agent, has_place, wish = std::move(wish)] {
    ingest::StartFilter outcome;
    auto order = std::make_shared<FilterOrder>();
    order->agent = agent;
    auto ids = has_place ? start_filter_ids(wish, order->mode, outcome)
                         : Error{Code::kLimit, "too many processes started at once"};
    start_filters_waiting_.fetch_sub(1);
    if (stopping_) return;
    if (ids.ok()) {
      order->ids = std::move(ids).value();
    } else {
      // What cannot be looked up is not recorded: nobody asked for everything.
      order->mode = wire::SetFunctionFilter::ONLY;
      outcome.error = ids.error().message;
      spdlog::warn("agents/{} records nothing: {}", agent.id, printable(outcome.error));
    }
    outcome.functions = order->ids.size();
    order->done = [id = agent.id](const Result<wire::CommandResult>& result) {
      if (result.ok() && result->ok()) return;
      spdlog::warn("agents/{} did not take its function filter: {}", id,
                   printable(result.ok() ? result->error() : result.error().message));
    };
    // To the peer's thread, as the command behind it.
    ingest_->note_start_filter(agent.process_id, outcome,
                               {0, wish.only, wish.except, order->ids.size()});
    send_filter_part(order, 0);
  });
}

Result<std::vector<uint64_t>> Collector::start_filter_ids(const ingest::FilterWish& wish,
                                                          wire::SetFunctionFilter::Mode& mode,
                                                          ingest::StartFilter& outcome) const {
  const auto only = FunctionPatterns::parse(wish.only);
  if (!only.ok()) return only.error();
  const auto except = FunctionPatterns::parse(wish.except);
  if (!except.ok()) return except.error();
  mode = mode_of(*only, *except);
  const auto match = [&](const FunctionPatterns& patterns,
                         size_t most) -> Result<std::vector<uint64_t>> {
    auto matched = patterns.match(wish.modules, naming_.symbolizer(), stopping_, most);
    if (!matched.ok()) return matched.error();
    outcome.unmatched.insert(outcome.unmatched.end(), matched->unmatched.begin(),
                             matched->unmatched.end());
    return std::move(matched->ids);
  };
  const auto without = match(*except, only->empty() ? size_t{wire::kMaxFunctionFilter}
                                                    : size_t{symbolize::kMaxElfSymbols});
  if (!without.ok() || only->empty()) return without;
  const auto with = match(*only, wire::kMaxFunctionFilter);
  if (!with.ok()) return with;
  return but(*with, *without);
}

}  // namespace collect::daemon
