#include "daemon/collector/detail/marker_control.h"

#include "daemon/collector/agents/outcomes.h"

namespace collect::daemon {
namespace {

template <class T, class Outcome, class Show>
ingest::Answer<T> answer_into(std::shared_ptr<OutcomeCall<Outcome>> call,
                              const ingest::AgentSnapshot& agent, Show show) {
  return [call = std::move(call), agent, show](Result<T> result) {
    auto outcome = outcome_for<Outcome>(agent);
    outcome.set_session(to_message(agent).session());
    if (!result.ok()) {
      call->fail(std::move(outcome), result.error());
      return;
    }
    show(*result, outcome);
    call->add(std::move(outcome));
  };
}

}  // namespace

MarkerControl::MarkerControl(const Registry& registry, ingest::Ingest& ingest,
                             control::Methods& methods)
    : registry_(registry), ingest_(ingest) {
  methods.serve<api::AnnotateRequest, api::AnnotateResponse>(
      [this](const auto& request, auto done) { annotate(request, std::move(done)); });
  methods.serve<api::RollContainerRequest, api::RollContainerResponse>(
      [this](const auto& request, auto done) { roll_container(request, std::move(done)); });
}

void MarkerControl::annotate(const api::AnnotateRequest& request,
                             control::Callback<api::AnnotateResponse> done) {
  const auto targets = registry_.recording_targets(request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  const auto call = std::make_shared<OutcomeCall<api::AnnotateOutcome>>(
      targets->size(), outcomes_into(std::move(done)));
  const auto show = [](uint64_t at_ns, api::AnnotateOutcome& outcome) {
    outcome.set_time_ns(at_ns);
  };
  for (const ingest::AgentSnapshot& agent : *targets) {
    ingest_.annotate(agent.process_id, request.time_ns(), request.text(),
                     answer_into<uint64_t>(call, agent, show));
  }
}

void MarkerControl::roll_container(const api::RollContainerRequest& request,
                                   control::Callback<api::RollContainerResponse> done) {
  const auto targets = registry_.recording_targets(request.target());
  if (!targets.ok()) {
    done(targets.error());
    return;
  }
  const auto call = std::make_shared<OutcomeCall<api::RollContainerOutcome>>(
      targets->size(), outcomes_into(std::move(done)));
  const auto show = [](const std::string& path, api::RollContainerOutcome& outcome) {
    outcome.set_path(utf8_text(path));
  };
  for (const ingest::AgentSnapshot& agent : *targets) {
    ingest_.roll_container(agent.process_id, answer_into<std::string>(call, agent, show));
  }
}

}  // namespace collect::daemon
