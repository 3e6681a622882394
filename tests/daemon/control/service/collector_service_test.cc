#include <gmock/gmock.h>

#include <thread>

#include "daemon/control/request_checks.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using ::testing::HasSubstr;
using Stub = api::Collector::Stub;

class CollectorServiceTest : public ServerFixture {};

TEST_F(CollectorServiceTest, ListsAgentsByFilterAndPage) {
  for (int i = 0; i < 5; ++i)
    collector_.add_agent(std::to_string(i), "lua", api::AGENT_STATE_RECORDING);
  collector_.add_agent("other", "zstd", api::AGENT_STATE_RECORDING);
  api::ListAgentsRequest request;
  request.mutable_target()->set_process_name("lua");
  request.set_page_size(2);
  std::vector<std::string> names;
  do {
    api::ListAgentsResponse response;
    const auto status = call(&Stub::ListAgents, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_LE(response.agents_size(), 2);
    for (const auto& agent : response.agents()) names.push_back(agent.name());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(names,
              ::testing::ElementsAre("agents/0", "agents/1", "agents/2", "agents/3", "agents/4"));
  request.set_page_token("made up");
  api::ListAgentsResponse response;
  EXPECT_EQ(call(&Stub::ListAgents, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CollectorServiceTest, ListsThreadsByPage) {
  api::ListThreadsRequest request;
  request.set_page_size(1);
  std::vector<uint32_t> ids;
  do {
    api::ListThreadsResponse response;
    const auto status = call(&Stub::ListThreads, request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(response.threads_size(), 1);
    EXPECT_EQ(response.agent(), "agents/1");
    ids.push_back(response.threads(0).thread_id());
    request.set_page_token(response.next_page_token());
  } while (!request.page_token().empty());
  EXPECT_THAT(ids, ::testing::ElementsAre(101u, 102u));
  request.set_name("bad\nname");
  api::ListThreadsResponse refused;
  EXPECT_EQ(call(&Stub::ListThreads, request, &refused).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CollectorServiceTest, ListsSessionsNewestFirst) {
  collector_.add_session("old", api::SESSION_STATE_COMPLETE);
  collector_.add_session("new", api::SESSION_STATE_ACTIVE);
  api::ListSessionsResponse response;
  ASSERT_TRUE(call(&Stub::ListSessions, {}, &response).ok());
  ASSERT_EQ(response.sessions_size(), 2);
  EXPECT_EQ(response.sessions(0).name(), "sessions/new");
  api::ListSessionsRequest request;
  request.mutable_target()->set_tag("tag-old");
  ASSERT_TRUE(call(&Stub::ListSessions, request, &response).ok());
  ASSERT_EQ(response.sessions_size(), 1);
  EXPECT_EQ(response.sessions(0).name(), "sessions/old");
}

TEST_F(CollectorServiceTest, GetsTheNewestSessionForAnEmptyName) {
  collector_.add_session("old", api::SESSION_STATE_COMPLETE);
  collector_.add_session("new", api::SESSION_STATE_ACTIVE);
  api::Session session;
  ASSERT_TRUE(call(&Stub::GetSession, {}, &session).ok());
  EXPECT_EQ(session.name(), "sessions/new");
  api::GetSessionRequest request;
  request.set_name("sessions/none");
  const auto status = call(&Stub::GetSession, request, &session);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("sessions/none"));
}

TEST_F(CollectorServiceTest, PassesTheSlowCallsOn) {
  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  api::AttachAgentRequest attach;
  attach.set_address("127.0.0.1:7720");
  api::Agent agent;
  ASSERT_TRUE(call(&Stub::AttachAgent, attach, &agent).ok());
  EXPECT_EQ(agent.address(), "127.0.0.1:7720");

  api::DetachAgentRequest detach;
  detach.set_name("agents/1");
  ASSERT_TRUE(call(&Stub::DetachAgent, detach, &agent).ok());
  EXPECT_EQ(agent.state(), api::AGENT_STATE_GONE);

  api::AttachProcessRequest attach_process;
  attach_process.set_pid(4711);
  api::AttachProcessResponse attached;
  ASSERT_TRUE(call(&Stub::AttachProcess, attach_process, &attached).ok());
  EXPECT_EQ(attached.agent().pid(), 4711u);
  ASSERT_EQ(attached.modules_size(), 1);
  EXPECT_EQ(attached.modules(0), std::to_string(::geteuid())) << "whose call it is";
  api::DetachProcessRequest detach_process;
  detach_process.set_pid(4712);
  api::DetachProcessResponse detached;
  EXPECT_EQ(call(&Stub::DetachProcess, detach_process, &detached).error_message(),
            "process 4712 has no agent, user " + std::to_string(::geteuid()));

  api::StartSessionRequest start;
  start.mutable_target()->set_agent("agents/1");
  start.mutable_duration()->set_seconds(30);
  api::StartSessionResponse started;
  ASSERT_TRUE(call(&Stub::StartSession, start, &started).ok());
  ASSERT_EQ(started.outcomes_size(), 1);
  EXPECT_EQ(started.outcomes(0).session().agent(), "agents/1");
  EXPECT_EQ(collector_.last_start().SerializeAsString(), start.SerializeAsString());
  start.mutable_duration()->set_seconds(-1);
  EXPECT_EQ(call(&Stub::StartSession, start, &started).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  api::StopSessionResponse stopped;
  ASSERT_TRUE(call(&Stub::StopSession, {}, &stopped).ok());
  ASSERT_EQ(stopped.outcomes_size(), 1);
  EXPECT_EQ(stopped.outcomes(0).session().state(), api::SESSION_STATE_COMPLETE);
  EXPECT_EQ(collector_.last_argument(), "");

  api::GetManifestRequest get;
  get.set_name("sessions/one");
  api::Manifest manifest;
  ASSERT_TRUE(call(&Stub::GetManifest, get, &manifest).ok());
  EXPECT_EQ(manifest.session(), "sessions/one");

  api::Stats stats;
  ASSERT_TRUE(call(&Stub::GetStats, {}, &stats).ok());
  EXPECT_EQ(stats.events_stored(), 123u);
}

TEST_F(CollectorServiceTest, EmptyAddressesAndNamesAreExplained) {
  api::Agent agent;
  auto status = call(&Stub::AttachAgent, {}, &agent);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("127.0.0.1:7720"));
  api::AttachProcessResponse attached;
  status = call(&Stub::AttachProcess, {}, &attached);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("{\"pid\": 4711}"));
  status = call(&Stub::DetachAgent, {}, &agent);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("ListAgents"));
}

TEST_F(CollectorServiceTest, EmptyStartDetailStartsItEverywhere) {
  api::StartDetailResponse response;
  ASSERT_TRUE(call(&Stub::StartDetail, {}, &response).ok());
  const DetailCommand command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_ON);
  EXPECT_EQ(command.target.ByteSizeLong(), 0u);
  EXPECT_TRUE(command.functions.empty() && command.threads.empty());
  EXPECT_EQ(command.duration_ns, 0u);
  EXPECT_EQ(command.pre_roll_ns, 0u);
  ASSERT_EQ(response.outcomes_size(), 1);
  EXPECT_FALSE(response.outcomes(0).has_error());
}

TEST_F(CollectorServiceTest, DetailRequestsArriveWhole) {
  api::StartDetailRequest start;
  start.mutable_target()->set_pid(7);
  start.add_threads("4711");
  start.add_functions("lua_*");
  start.mutable_duration()->set_seconds(5);
  start.mutable_pre_roll()->set_nanos(250'000'000);
  api::StartDetailResponse started;
  ASSERT_TRUE(call(&Stub::StartDetail, start, &started).ok());
  DetailCommand command = collector_.last_detail();
  EXPECT_EQ(command.target.pid(), 7u);
  EXPECT_THAT(command.threads, ::testing::ElementsAre("4711"));
  EXPECT_THAT(command.functions, ::testing::ElementsAre("lua_*"));
  EXPECT_EQ(command.duration_ns, 5'000'000'000u);
  EXPECT_EQ(command.pre_roll_ns, 250'000'000u);
  EXPECT_THAT(started.outcomes(0).warnings(), ::testing::ElementsAre("there is no pre-roll"));
  start.mutable_duration()->set_seconds(-1);
  EXPECT_EQ(call(&Stub::StartDetail, start, &started).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);

  api::ArmDetailRequest arm;
  arm.mutable_target()->set_agent("agents/1");
  arm.add_functions("f");
  arm.add_threads("name=w*");
  api::ArmDetailResponse armed;
  ASSERT_TRUE(call(&Stub::ArmDetail, arm, &armed).ok());
  command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_ARMED);
  EXPECT_EQ(command.target.agent(), "agents/1");
  EXPECT_THAT(command.functions, ::testing::ElementsAre("f"));
  EXPECT_THAT(command.threads, ::testing::ElementsAre("name=w*"));
  arm.add_functions("");
  EXPECT_EQ(call(&Stub::ArmDetail, arm, &armed).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  api::StopDetailRequest stop;
  stop.add_threads("12");
  api::StopDetailResponse stopped;
  ASSERT_TRUE(call(&Stub::StopDetail, stop, &stopped).ok());
  command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_OFF);
  EXPECT_THAT(command.threads, ::testing::ElementsAre("12"));
  stop.mutable_target()->set_tag("\n");
  EXPECT_EQ(call(&Stub::StopDetail, stop, &stopped).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CollectorServiceTest, ListsByState) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  collector_.add_agent("2", "lua", api::AGENT_STATE_GONE);
  collector_.add_agent("3", "lua", api::AGENT_STATE_CONNECTED);
  api::ListAgentsRequest agents;
  agents.add_states(api::AGENT_STATE_GONE);
  agents.add_states(api::AGENT_STATE_CONNECTED);
  api::ListAgentsResponse listed;
  ASSERT_TRUE(call(&Stub::ListAgents, agents, &listed).ok());
  ASSERT_EQ(listed.agents_size(), 2);
  EXPECT_EQ(listed.agents(0).name(), "agents/2");
  EXPECT_EQ(listed.agents(1).name(), "agents/3");

  collector_.add_session("old", api::SESSION_STATE_COMPLETE);
  collector_.add_session("new", api::SESSION_STATE_ACTIVE);
  api::ListSessionsRequest sessions;
  sessions.add_states(api::SESSION_STATE_COMPLETE);
  api::ListSessionsResponse found;
  ASSERT_TRUE(call(&Stub::ListSessions, sessions, &found).ok());
  ASSERT_EQ(found.sessions_size(), 1);
  EXPECT_EQ(found.sessions(0).name(), "sessions/old");
}

TEST_F(CollectorServiceTest, GetsOneAgent) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  api::Agent agent;
  ASSERT_TRUE(call(&Stub::GetAgent, {}, &agent).ok());
  EXPECT_EQ(agent.name(), "agents/1");
  api::GetAgentRequest request;
  request.set_name("agents/9");
  EXPECT_EQ(call(&Stub::GetAgent, request, &agent).error_code(), grpc::StatusCode::NOT_FOUND);
  request.set_name("\n");
  EXPECT_EQ(call(&Stub::GetAgent, request, &agent).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(CollectorServiceTest, RulesAreAboutAgentsToCome) {
  api::SetRulesRequest request;
  api::Rule& rule = *request.add_rules();
  rule.mutable_target()->set_process_name("render*");
  rule.set_action(api::Rule::ACTION_RECORD);
  rule.mutable_duration()->set_seconds(60);
  api::Rules rules;
  ASSERT_TRUE(call(&Stub::SetRules, request, &rules).ok());
  EXPECT_EQ(rules.SerializeAsString(), request.SerializeAsString());
  ASSERT_TRUE(call(&Stub::GetRules, {}, &rules).ok());
  EXPECT_EQ(rules.SerializeAsString(), request.SerializeAsString());
  rule.mutable_target()->set_pid(7);
  const auto status = call(&Stub::SetRules, request, &rules);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("agents to come"));
}

// grpcurl and other clients show what is in the details.
TEST_F(CollectorServiceTest, ErrorsHaveAReasonForPrograms) {
  collector_.fail_with({Code::kNoSpace, "the disk is full"});
  api::StopSessionResponse response;
  const auto status = call(&Stub::StopSession, {}, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), 8);
  EXPECT_EQ(details.message(), "the disk is full");
  google::rpc::ErrorInfo info;
  ASSERT_EQ(details.details_size(), 1);
  ASSERT_TRUE(details.details(0).UnpackTo(&info));
  EXPECT_EQ(info.reason(), "NO_SPACE");
  EXPECT_EQ(info.domain(), "collectord");
}

TEST_F(CollectorServiceTest, MarkersAndContainersAreAskedFor) {
  api::AnnotateRequest mark;
  api::AnnotateResponse marked;
  EXPECT_EQ(call(&Stub::Annotate, mark, &marked).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  mark.set_text("door opens");
  mark.mutable_target()->set_agent("agents/1");
  ASSERT_TRUE(call(&Stub::Annotate, mark, &marked).ok());
  EXPECT_EQ(collector_.last_argument(), "agents/1|door opens");
  EXPECT_EQ(marked.outcomes(0).time_ns(), 77u);
  mark.set_text(std::string(kMaxAnnotationBytes + 1, 'x'));
  EXPECT_EQ(call(&Stub::Annotate, mark, &marked).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  api::RollContainerRequest roll;
  api::RollContainerResponse rolled;
  ASSERT_TRUE(call(&Stub::RollContainer, roll, &rolled).ok());
  EXPECT_EQ(rolled.outcomes(0).path(), "/traces/session/pid_1/capture-000002.rtc");
}

TEST_F(CollectorServiceTest, EveryCodeHasItsStatus) {
  const std::pair<Code, grpc::StatusCode> expected[] = {
      {Code::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT},
      {Code::kNotFound, grpc::StatusCode::NOT_FOUND},
      {Code::kAlreadyExists, grpc::StatusCode::ALREADY_EXISTS},
      {Code::kDamaged, grpc::StatusCode::DATA_LOSS},
      {Code::kTruncated, grpc::StatusCode::DATA_LOSS},
      {Code::kUnsupported, grpc::StatusCode::FAILED_PRECONDITION},
      {Code::kLimit, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {Code::kNoSpace, grpc::StatusCode::RESOURCE_EXHAUSTED},
      {Code::kIo, grpc::StatusCode::INTERNAL},
      {Code::kPermission, grpc::StatusCode::PERMISSION_DENIED},
      {Code::kUnavailable, grpc::StatusCode::UNAVAILABLE},
      {Code::kCancelled, grpc::StatusCode::CANCELLED},
  };
  for (const auto& [code, status_code] : expected) {
    collector_.fail_with({code, "do this next"});
    api::StopSessionResponse response;
    const auto status = call(&Stub::StopSession, {}, &response);
    EXPECT_EQ(status.error_code(), status_code);
    EXPECT_EQ(status.error_message(), "do this next");
  }
}

TEST_F(CollectorServiceTest, AnswerAfterTheClientGaveUpGoesNowhere) {
  collector_.hold_answers();
  grpc::ClientContext cancelled;
  api::StopSessionResponse response;
  std::thread client([&] {
    EXPECT_EQ(stub_->StopSession(&cancelled, {}, &response).error_code(),
              grpc::StatusCode::CANCELLED);
  });
  collector_.wait_for_held(1);
  cancelled.TryCancel();
  client.join();

  grpc::ClientContext short_lived;
  short_lived.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  EXPECT_EQ(stub_->StopSession(&short_lived, {}, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  collector_.release_all();

  api::Stats stats;
  EXPECT_TRUE(call(&Stub::GetStats, {}, &stats).ok());
}

TEST_F(CollectorServiceTest, WatchAgentsBeginsWithThePresentOnes) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  collector_.add_agent("2", "zstd", api::AGENT_STATE_RECORDING);
  const auto made = context();
  api::WatchAgentsRequest request;
  request.mutable_target()->set_process_name("lua");
  const auto reader = stub_->WatchAgents(made.get(), request);
  api::AgentEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_PRESENT);
  EXPECT_EQ(event.agent().name(), "agents/1");
  api::AgentEvent synced;
  ASSERT_TRUE(reader->Read(&synced));
  EXPECT_EQ(synced.kind(), api::CHANGE_KIND_SYNCED);
  EXPECT_FALSE(synced.has_agent());

  api::Agent changed = event.agent();
  changed.set_state(api::AGENT_STATE_DISCONNECTED);
  api::Agent foreign;
  foreign.set_name("agents/2");
  foreign.set_process_name("zstd");
  collector_.change_agent(api::CHANGE_KIND_CHANGED, foreign);
  collector_.change_agent(api::CHANGE_KIND_CHANGED, changed);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_CHANGED);
  EXPECT_EQ(event.agent().state(), api::AGENT_STATE_DISCONNECTED);

  collector_.change_agent(api::CHANGE_KIND_REMOVED, changed);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::CHANGE_KIND_REMOVED);
  made->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  collector_.wait_for_watches(0);
}

TEST_F(CollectorServiceTest, ClientThatNeverReadsDoesNotDelayOthers) {
  const auto made = context();
  const auto reader = stub_->WatchAgents(made.get(), {});
  collector_.wait_for_watches(1);
  api::Agent agent;
  agent.set_name("agents/1");
  agent.set_status(std::string(1000, 's'));
  for (uint32_t i = 1; i <= 20'000; ++i) {
    agent.set_reconnects(i);
    collector_.change_agent(api::CHANGE_KIND_CHANGED, agent);
  }
  api::AgentEvent event;
  do {
    ASSERT_TRUE(reader->Read(&event));
  } while (event.agent().reconnects() < 20'000);
}

TEST_F(CollectorServiceTest, WatchSessionEndsWithTheSealedSession) {
  collector_.add_session("old", api::SESSION_STATE_COMPLETE);
  collector_.add_session("new", api::SESSION_STATE_ACTIVE);
  const auto made = context();
  api::WatchSessionRequest request;
  request.mutable_interval()->set_nanos(1);
  const auto reader = stub_->WatchSession(made.get(), request);
  api::Session session;
  ASSERT_TRUE(reader->Read(&session));
  EXPECT_EQ(session.name(), "sessions/new");
  EXPECT_EQ(collector_.last_interval_ms(), kMinWatchIntervalMs);
  session.set_events(10);
  collector_.change_session(session, false);
  session.set_state(api::SESSION_STATE_COMPLETE);
  collector_.change_session(session, true);
  while (reader->Read(&session)) {
  }
  EXPECT_EQ(session.state(), api::SESSION_STATE_COMPLETE);
  EXPECT_TRUE(reader->Finish().ok());
  collector_.wait_for_watches(0);
}

TEST_F(CollectorServiceTest, WatchingASealedSessionShowsItOnce) {
  collector_.add_session("old", api::SESSION_STATE_RECOVERED);
  const auto made = context();
  const auto reader = stub_->WatchSession(made.get(), {});
  api::Session session;
  ASSERT_TRUE(reader->Read(&session));
  EXPECT_FALSE(reader->Read(&session));
  EXPECT_TRUE(reader->Finish().ok());
}

TEST_F(CollectorServiceTest, WatchSessionSaysWhyItCannot) {
  const auto missing_context = context();
  const auto missing = stub_->WatchSession(missing_context.get(), {});
  api::Session session;
  EXPECT_FALSE(missing->Read(&session));
  EXPECT_EQ(missing->Finish().error_code(), grpc::StatusCode::NOT_FOUND);

  collector_.add_session("one", api::SESSION_STATE_ACTIVE);
  const auto gone_context = context();
  const auto gone = stub_->WatchSession(gone_context.get(), {});
  ASSERT_TRUE(gone->Read(&session));
  session.set_status("deleted");
  collector_.change_session(session, true);
  while (gone->Read(&session)) {
  }
  const auto status = gone->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_THAT(status.error_message(), HasSubstr("deleted"));
}

TEST_F(CollectorServiceTest, OversizedRequestsAreRefused) {
  api::StartDetailRequest request;
  request.add_functions(std::string(kMaxRequestBytes, 'f'));
  api::StartDetailResponse response;
  EXPECT_EQ(call(&Stub::StartDetail, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(collector_.last_detail().functions.empty());
  // One that is as large as it may be is read, and refused for what it says.
  std::string& name = *request.mutable_functions(0);
  name.resize(name.size() - (request.ByteSizeLong() - kMaxRequestBytes));
  ASSERT_EQ(request.ByteSizeLong(), size_t{kMaxRequestBytes});
  EXPECT_EQ(call(&Stub::StartDetail, request, &response).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  name += 'f';
  EXPECT_EQ(call(&Stub::StartDetail, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace collect::control
