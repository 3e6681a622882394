// Which functions are recorded at all: patterns become ids, ids become commands, part after part.
#include <algorithm>
#include <asio/post.hpp>
#include <iterator>

#include "daemon/collector.h"
#include "daemon/collector_functions.h"
#include "proto/wire/layout.h"

namespace collect::daemon {

// One request on its way to several agents; the last one to answer hands the outcomes on.
struct Collector::FilterCall {
  api::SetFunctionFilterRequest request;
  FunctionPatterns only;
  FunctionPatterns except;
  control::Callback<api::SetFunctionFilterResponse> done;
  std::mutex mutex;
  size_t missing = 0;                       // guarded by mutex
  api::SetFunctionFilterResponse response;  // guarded by mutex

  void add(api::FunctionFilterOutcome outcome) {
    std::unique_lock lock(mutex);
    *response.add_outcomes() = std::move(outcome);
    if (--missing != 0) return;
    lock.unlock();
    done(std::move(response));
  }
  void fail(const ingest::AgentSnapshot& agent, const std::string& why) {
    api::FunctionFilterOutcome outcome;
    outcome.set_agent(to_message(agent).name());
    outcome.set_error(why);
    add(std::move(outcome));
  }
};

// What one of the agents is told.
struct Collector::FilterOrder {
  std::shared_ptr<FilterCall> call;
  ingest::AgentSnapshot agent;
  wire::SetFunctionFilter::Mode mode{};
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
  if (targets->empty()) {
    done(api::SetFunctionFilterResponse());
    return;
  }
  auto call = std::make_shared<FilterCall>();
  call->request = request;
  call->only = std::move(only).value();
  call->except = std::move(except).value();
  call->done = std::move(done);
  call->missing = targets->size();
  for (const ingest::AgentSnapshot& agent : *targets) {
    if (agent.state == ingest::AgentState::kDialing) {
      call->fail(agent, "does not answer yet: " + agent.status);
    } else if (call->only.empty() && call->except.empty()) {
      send_filter_part(std::make_shared<FilterOrder>(
                           FilterOrder{call, agent, wire::SetFunctionFilter::EVERYTHING, {}}),
                       0);
    } else {
      resolve_filter(call, agent);
    }
  }
}

void Collector::resolve_filter(const std::shared_ptr<FilterCall>& call,
                               const ingest::AgentSnapshot& agent) {
  const auto resolve = [this, call, agent](const std::vector<storage::ModuleInfo>& modules) {
    auto order = std::make_shared<FilterOrder>();
    order->call = call;
    order->agent = agent;
    const FunctionPatterns& listed = call->only.empty() ? call->except : call->only;
    auto ids = listed.resolve(modules, symbol_directories_, wire::kMaxFunctionFilter);
    if (!ids.ok()) {
      call->fail(agent, ids.error().message);
      return;
    }
    if (call->only.empty()) {
      order->mode = wire::SetFunctionFilter::ALL_BUT;
      order->ids = std::move(ids).value();
    } else {
      order->mode = wire::SetFunctionFilter::ONLY;
      const auto without = call->except.resolve(modules, symbol_directories_, SIZE_MAX);
      if (!without.ok()) {
        call->fail(agent, without.error().message);
        return;
      }
      std::set_difference(ids->begin(), ids->end(), without->begin(), without->end(),
                          std::back_inserter(order->ids));
    }
    send_filter_part(order, 0);
  };
  ingest_->modules(agent.process_id, [this, call, agent,
                                      resolve](Result<std::vector<storage::ModuleInfo>> modules) {
    if (!modules.ok()) {
      call->fail(agent, modules.error().message);
      return;
    }
    // Symbol files are read: not on a thread that others wait for.
    asio::post(files_, [resolve, known = std::move(modules).value()] { resolve(known); });
  });
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
  ingest_->command(
      order->agent.process_id, std::move(command),
      [this, order, part, last](Result<wire::CommandResult> result) {
        if (!result.ok() || !result->ok()) {
          order->call->fail(order->agent, result.ok() ? result->error() : result.error().message);
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
        api::FunctionFilterOutcome outcome;
        outcome.set_agent(to_message(order->agent).name());
        outcome.set_ok(true);
        outcome.set_at_ns(result->at_ns());
        outcome.set_functions_matched(static_cast<uint32_t>(order->ids.size()));
        outcome.set_functions_patched(result->functions_patched());
        order->call->add(std::move(outcome));
      });
}

}  // namespace collect::daemon
