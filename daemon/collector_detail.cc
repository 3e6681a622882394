// Detail recording: who is meant, which functions are meant, and what each agent answered.
#include <google/protobuf/util/time_util.h>

#include "daemon/collector.h"
#include "daemon/collector_call.h"
#include "daemon/collector_functions.h"
#include "proto/wire/layout.h"

namespace collect::daemon {
namespace {

Result<wire::Command> detail_command(api::DetailMode mode, const api::DetailRequest& request) {
  using google::protobuf::util::TimeUtil;
  wire::Command command;
  wire::SetDetail* detail = command.mutable_set_detail();
  detail->set_mode(to_wire(mode));
  if (mode != api::ON) return command;
  const int64_t duration_ns = TimeUtil::DurationToNanoseconds(request.duration());
  const int64_t pre_roll_ns = TimeUtil::DurationToNanoseconds(request.pre_roll());
  if (duration_ns < 0 || pre_roll_ns < 0) {
    return Error{Code::kInvalidArgument, "duration and pre_roll can't be negative"};
  }
  detail->set_duration_ns(static_cast<uint64_t>(duration_ns));
  detail->set_pre_roll_ns(static_cast<uint64_t>(pre_roll_ns));
  return command;
}

api::DetailOutcome outcome_for(const ingest::AgentSnapshot& agent) {
  api::DetailOutcome outcome;
  const api::Agent message = to_message(agent);
  outcome.set_agent(message.name());
  outcome.set_session(message.session());
  outcome.set_detail(message.detail());
  return outcome;
}

void add_result(const wire::CommandResult& result, api::DetailMode mode,
                api::DetailOutcome& outcome) {
  outcome.set_ok(result.ok());
  outcome.set_error(result.error());
  outcome.set_at_ns(result.at_ns());
  outcome.set_pre_roll_records(result.pre_roll_records());
  if (result.ok()) outcome.set_detail(mode);
}

}  // namespace

struct Collector::DetailCall : OutcomeCall<api::DetailResponse> {
  using OutcomeCall::OutcomeCall;
  api::DetailMode mode{};
  wire::Command command;
  std::vector<std::string> threads;  // storage/thread_pattern.h; empty: all
  FunctionPatterns patterns;
};

// What one of the agents is told.
struct Collector::DetailOrder {
  std::shared_ptr<DetailCall> call;
  ingest::AgentSnapshot agent;
  wire::Command command;

  void fail(const std::string& reason) const { call->fail(outcome_for(agent), reason); }
};

void Collector::set_detail(api::DetailMode mode, const api::DetailRequest& request,
                           control::Callback<api::DetailResponse> done) {
  const auto targets = registry_.targets(request.target());
  Result<wire::Command> command = detail_command(mode, request);
  Result<FunctionPatterns> patterns =
      FunctionPatterns::parse({request.functions().begin(), request.functions().end()});
  if (!targets.ok() || !command.ok() || !patterns.ok()) {
    done(!targets.ok() ? targets.error() : !command.ok() ? command.error() : patterns.error());
    return;
  }
  auto call = std::make_shared<DetailCall>(targets->size(), std::move(done));
  call->mode = mode;
  call->command = std::move(command).value();
  call->patterns = std::move(patterns).value();
  call->threads.assign(request.thread_patterns().begin(), request.thread_patterns().end());
  for (const uint32_t thread : request.threads()) call->threads.push_back(std::to_string(thread));
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto order = std::make_shared<DetailOrder>(DetailOrder{call, agent, call->command});
    if (agent.state == ingest::AgentState::kDialing) {
      order->fail("does not answer yet: " + agent.status);
    } else if (call->threads.empty()) {
      find_detail_functions(order);
    } else {
      find_detail_threads(order);
    }
  }
}

// An agent would take any number for a thread: whether it is one of its threads is checked here.
void Collector::find_detail_threads(const std::shared_ptr<DetailOrder>& order) {
  const auto on_threads = [this, order](Result<std::vector<storage::ThreadIdentity>> threads) {
    if (!threads.ok()) {
      order->fail(threads.error().message);
      return;
    }
    const auto places = storage::select_threads(order->call->threads, *threads);
    if (!places.ok()) {
      order->fail(places.error().message);
      return;
    }
    if (places->size() > wire::kMaxFilterThreads) {
      order->fail("more threads are meant than an agent holds, at most " +
                  std::to_string(wire::kMaxFilterThreads) + ": narrow the patterns");
      return;
    }
    for (const size_t place : *places) {
      order->command.mutable_set_detail()->add_thread_ids(*(*threads)[place].thread_id);
    }
    find_detail_functions(order);
  };
  ingest_->threads(order->agent.process_id, on_threads);
}

void Collector::find_detail_functions(const std::shared_ptr<DetailOrder>& order) {
  if (order->call->patterns.empty()) {
    send_detail(order);
    return;
  }
  find_functions(
      order->agent,
      [this, order](const auto& modules) {
        return order->call->patterns.resolve(modules, naming_.symbolizer(), stopping_,
                                             wire::kMaxFilterFunctions);
      },
      [this, order](const Result<std::vector<uint64_t>>& matched) {
        if (!matched.ok()) {
          order->fail(matched.error().message);
          return;
        }
        for (const uint64_t id : *matched) {
          order->command.mutable_set_detail()->add_function_ids(id);
        }
        send_detail(order);
      });
}

void Collector::send_detail(const std::shared_ptr<DetailOrder>& order) {
  const auto on_answer = [order](Result<wire::CommandResult> result) {
    if (!result.ok()) {
      order->fail(result.error().message);
      return;
    }
    api::DetailOutcome outcome = outcome_for(order->agent);
    outcome.set_functions_matched(
        static_cast<uint32_t>(order->command.set_detail().function_ids_size()));
    add_result(*result, order->call->mode, outcome);
    order->call->add(std::move(outcome));
  };
  ingest_->command(order->agent.process_id, order->command, on_answer);
}

}  // namespace collect::daemon
