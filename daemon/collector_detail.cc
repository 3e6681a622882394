// Detail recording: who is meant, which functions are meant, and what each agent answered.
#include <google/protobuf/util/time_util.h>

#include <asio/post.hpp>

#include "daemon/collector.h"
#include "daemon/collector_functions.h"

namespace collect::daemon {
namespace {

// Collects the outcomes of several agents; the last one to answer hands them on.
struct DetailAnswers {
  std::mutex mutex;
  size_t missing = 0;
  api::DetailResponse response;
  control::Callback<api::DetailResponse> done;

  void add(api::DetailOutcome outcome) {
    std::unique_lock lock(mutex);
    *response.add_outcomes() = std::move(outcome);
    if (--missing != 0) return;
    lock.unlock();
    done(std::move(response));
  }
};

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

void Collector::set_detail(api::DetailMode mode, const api::DetailRequest& request,
                           control::Callback<api::DetailResponse> done) {
  const auto targets = registry_.targets(request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  const Result<wire::Command> command = detail_command(mode, request);
  if (!command.ok()) {
    done(command.error());
    return;
  }
  const auto patterns = FunctionPatterns::parse({request.functions().begin(),
                                                 request.functions().end()});
  if (!patterns.ok()) {
    done(patterns.error());
    return;
  }
  auto answers = std::make_shared<DetailAnswers>();
  answers->missing = targets->size();
  answers->done = std::move(done);
  for (const ingest::AgentSnapshot& agent : *targets) {
    const auto send = [this, mode, agent, answers](wire::Command ready, uint32_t matched) {
      ingest_->command(agent.process_id, std::move(ready),
                       [mode, agent, answers, matched](Result<wire::CommandResult> result) {
                         api::DetailOutcome outcome = outcome_for(agent);
                         outcome.set_functions_matched(matched);
                         if (result.ok()) {
                           add_result(*result, mode, outcome);
                         } else {
                           outcome.set_error(result.error().message);
                         }
                         answers->add(std::move(outcome));
                       });
    };
    if (agent.state == ingest::AgentState::kDialing) {
      api::DetailOutcome outcome = outcome_for(agent);
      outcome.set_error("does not answer yet: " + agent.status);
      answers->add(std::move(outcome));
      continue;
    }
    if (patterns->empty()) {
      send(*command, 0);
      continue;
    }
    // Symbol files are read: not on a thread that others wait for.
    asio::post(files_, [this, agent, answers, send, patterns = *patterns, ready = *command] {
      const auto matched = patterns.resolve(*agent.modules, symbol_directories_);
      if (!matched.ok()) {
        api::DetailOutcome outcome = outcome_for(agent);
        outcome.set_error(matched.error().message);
        answers->add(std::move(outcome));
        return;
      }
      wire::Command filled = ready;
      for (const uint64_t id : *matched) filled.mutable_set_detail()->add_function_ids(id);
      send(std::move(filled), static_cast<uint32_t>(matched->size()));
    });
  }
}

}  // namespace collect::daemon
