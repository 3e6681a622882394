// Under which requests the methods of the fake are called.
#include "tests/daemon/control/fake_collector.h"

namespace collect::control {

void FakeCollector::serve_methods() {
  methods_.serve<api::AttachAgentRequest, api::Agent>(
      [this](const auto& request, auto done) { attach(request.address(), std::move(done)); });
  methods_.serve<api::DetachAgentRequest, api::Agent>(
      [this](const auto& request, auto done) { detach(request.name(), std::move(done)); });
  methods_.serve<CallOf<api::AttachProcessRequest>, api::AttachProcessResponse>(
      [](const auto& call, auto done) {
        api::AttachProcessResponse response;
        response.mutable_agent()->set_pid(static_cast<uint32_t>(call.request.pid()));
        response.add_modules(call.caller.id);
        done(response);
      });
  methods_.serve<CallOf<api::DetachProcessRequest>, api::DetachProcessResponse>(
      [](const auto& call, auto done) {
        done(Error{Code::kNotFound, "process " + std::to_string(call.request.pid()) +
                                        " has no agent, user " + call.caller.id});
      });
  methods_.serve<api::StartSessionRequest, api::StartSessionResponse>(
      [this](const auto& request, auto done) { start_session(request, std::move(done)); });
  methods_.serve<api::StopSessionRequest, api::StopSessionResponse>(
      [this](const auto& request, auto done) { stop_session(request.target(), std::move(done)); });
  methods_.serve<api::GetManifestRequest, api::Manifest>(
      [this](const auto& request, auto done) { manifest(request.name(), std::move(done)); });
  methods_.serve<api::ListFilesRequest, api::ListFilesResponse>(
      [this](const auto& request, auto done) { list_files(request.name(), std::move(done)); });
  methods_.serve<api::SnapshotSessionRequest, api::Session>([this](const auto& request, auto done) {
    snapshot_session(request.name(), std::move(done));
  });
  methods_.serve<api::DeleteSessionRequest, api::DeleteSessionResponse>(
      [this](const auto& request, auto done) { delete_session(request.name(), std::move(done)); });
  methods_.serve<DetailCommand, std::vector<api::DetailOutcome>>(
      [this](const auto& order, auto done) { set_detail(order, std::move(done)); });
  methods_.serve<api::SetTriggersRequest, api::SetTriggersResponse>(
      [this](const auto& request, auto done) { set_triggers(request, std::move(done)); });
  methods_.serve<api::GetTriggersRequest, api::GetTriggersResponse>(
      [this](const auto& request, auto done) { done(triggers(request.target())); });
  methods_.serve<api::SetFunctionFilterRequest, api::SetFunctionFilterResponse>(
      [this](const auto& request, auto done) { set_function_filter(request, std::move(done)); });
  methods_.serve<api::AnnotateRequest, api::AnnotateResponse>(
      [this](const auto& request, auto done) { annotate(request, std::move(done)); });
  methods_.serve<api::RollContainerRequest, api::RollContainerResponse>(
      [this](const auto& request, auto done) { roll_container(request, std::move(done)); });
  methods_.serve<api::ListThreadsRequest, api::ListThreadsResponse>([this](const auto& request,
                                                                           auto done) {
    api::ListThreadsResponse response;
    response.set_agent("agents/1");
    for (const auto& [id, name] : {std::pair(101u, "main"), std::pair(102u, "worker \x1b[2J")}) {
      api::AgentThread* const thread = response.add_threads();
      thread->set_thread_id(id);
      thread->set_name(name);
    }
    answer(request.name(), response, std::move(done));
  });
  methods_.serve<api::GetRulesRequest, api::Rules>(
      [this](const auto&, auto done) { done(rules()); });
  methods_.serve<api::SetRulesRequest, api::Rules>([this](const auto& request, auto done) {
    api::Rules rules;
    *rules.mutable_rules() = request.rules();
    set_rules(rules, std::move(done));
  });
}

}  // namespace collect::control
