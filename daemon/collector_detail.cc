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
  if (request.threads_size() > static_cast<int>(wire::kMaxFilterThreads)) {
    return Error{Code::kLimit, "threads: at most " + std::to_string(wire::kMaxFilterThreads)};
  }
  wire::Command command;
  wire::SetDetail* detail = command.mutable_set_detail();
  detail->set_mode(to_wire(mode));
  for (const uint32_t thread : request.threads()) detail->add_thread_ids(thread);
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
  FunctionPatterns patterns;
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
  for (const ingest::AgentSnapshot& agent : *targets) {
    if (agent.state == ingest::AgentState::kDialing) {
      call->fail(outcome_for(agent), "does not answer yet: " + agent.status);
    } else if (call->patterns.empty()) {
      send_detail(call, agent, {});
    } else {
      find_functions(
          agent,
          [this, call](const auto& modules) {
            return call->patterns.resolve(modules, naming_.symbolizer(), stopping_,
                                          wire::kMaxFilterFunctions);
          },
          [this, call, agent](const Result<std::vector<uint64_t>>& matched) {
            if (matched.ok()) {
              send_detail(call, agent, *matched);
            } else {
              call->fail(outcome_for(agent), matched.error().message);
            }
          });
    }
  }
}

void Collector::send_detail(const std::shared_ptr<DetailCall>& call,
                            const ingest::AgentSnapshot& agent,
                            const std::vector<uint64_t>& functions) {
  wire::Command command = call->command;
  for (const uint64_t id : functions) command.mutable_set_detail()->add_function_ids(id);
  ingest_->command(agent.process_id, std::move(command),
                   [call, agent, matched = functions.size()](Result<wire::CommandResult> result) {
                     if (!result.ok()) {
                       call->fail(outcome_for(agent), result.error().message);
                       return;
                     }
                     api::DetailOutcome outcome = outcome_for(agent);
                     outcome.set_functions_matched(static_cast<uint32_t>(matched));
                     add_result(*result, call->mode, outcome);
                     call->add(std::move(outcome));
                   });
}

}  // namespace collect::daemon
