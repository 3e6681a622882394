// Markers and containers: what is asked of the sessions that record now, and what each answered.
#include "daemon/collector.h"

namespace collect::daemon {
namespace {

// One request on its way to several sessions; the last one to answer hands the outcomes on.
template <class Response>
struct OrderCall {
  control::Callback<Response> done;
  std::mutex mutex;
  size_t missing = 0;  // guarded by mutex
  Response response;   // guarded by mutex

  void add(api::SessionOutcome outcome) {
    std::unique_lock lock(mutex);
    *response.add_outcomes() = std::move(outcome);
    if (--missing != 0) return;
    lock.unlock();
    done(std::move(response));
  }
};

api::SessionOutcome outcome_for(const ingest::AgentSnapshot& agent) {
  api::SessionOutcome outcome;
  const api::Agent message = to_message(agent);
  outcome.set_agent(message.name());
  outcome.set_session(message.session());
  return outcome;
}

// Those that are meant: a named one whatever its state, so that the answer says why it can't be.
Result<std::vector<ingest::AgentSnapshot>> recording_targets(const CollectorRegistry& registry,
                                                             const std::string& target) {
  auto targets = registry.targets(target);
  if (!targets.ok() || !target.empty()) return targets;
  std::erase_if(*targets, [](const ingest::AgentSnapshot& agent) {
    return agent.state != ingest::AgentState::kRecording &&
           agent.state != ingest::AgentState::kDisconnected;
  });
  if (targets->empty()) return Error{Code::kNotFound, "no session records now"};
  return targets;
}

template <class Response, class T, class Show>
ingest::Answer<T> answer_into(std::shared_ptr<OrderCall<Response>> call,
                              const ingest::AgentSnapshot& agent, Show show) {
  return [call = std::move(call), agent, show](Result<T> result) {
    api::SessionOutcome outcome = outcome_for(agent);
    outcome.set_ok(result.ok());
    if (result.ok()) {
      show(*result, outcome);
    } else {
      outcome.set_error(result.error().message);
    }
    call->add(std::move(outcome));
  };
}

template <class Response>
std::shared_ptr<OrderCall<Response>> make_call(size_t targets, control::Callback<Response> done) {
  auto call = std::make_shared<OrderCall<Response>>();
  call->missing = targets;
  call->done = std::move(done);
  return call;
}

}  // namespace

void Collector::annotate(const api::AnnotateRequest& request,
                         control::Callback<api::AnnotateResponse> done) {
  const auto targets = recording_targets(registry_, request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  const auto call = make_call(targets->size(), std::move(done));
  const auto show = [](uint64_t at_ns, api::SessionOutcome& outcome) { outcome.set_at_ns(at_ns); };
  for (const ingest::AgentSnapshot& agent : *targets) {
    ingest_->annotate(agent.process_id, request.at_ns(), request.text(),
                      answer_into<api::AnnotateResponse, uint64_t>(call, agent, show));
  }
}

void Collector::roll_container(const api::RollContainerRequest& request,
                               control::Callback<api::RollContainerResponse> done) {
  const auto targets = recording_targets(registry_, request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  const auto call = make_call(targets->size(), std::move(done));
  const auto show = [](const std::string& path, api::SessionOutcome& outcome) {
    outcome.set_container(path);
  };
  for (const ingest::AgentSnapshot& agent : *targets) {
    ingest_->roll_container(
        agent.process_id, answer_into<api::RollContainerResponse, std::string>(call, agent, show));
  }
}

}  // namespace collect::daemon
