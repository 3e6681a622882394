#include <gmock/gmock.h>

#include <thread>

#include "daemon/control/request_checks.h"
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

using ::testing::HasSubstr;
using Stub = api::Collector::Stub;

class CollectorServiceTest : public ServerFixture {};

TEST_F(CollectorServiceTest, ListsAgentsByFilterAndPage) {
  for (int i = 0; i < 5; ++i) collector_.add_agent(std::to_string(i), "lua", api::RECORDING);
  collector_.add_agent("other", "zstd", api::RECORDING);
  api::ListAgentsRequest request;
  request.set_filter("lua");
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

TEST_F(CollectorServiceTest, ListsSessionsNewestFirst) {
  collector_.add_session("old", api::COMPLETE);
  collector_.add_session("new", api::ACTIVE);
  api::ListSessionsResponse response;
  ASSERT_TRUE(call(&Stub::ListSessions, {}, &response).ok());
  ASSERT_EQ(response.sessions_size(), 2);
  EXPECT_EQ(response.sessions(0).name(), "sessions/new");
  api::ListSessionsRequest request;
  request.set_filter("tag-old");
  ASSERT_TRUE(call(&Stub::ListSessions, request, &response).ok());
  ASSERT_EQ(response.sessions_size(), 1);
  EXPECT_EQ(response.sessions(0).name(), "sessions/old");
}

TEST_F(CollectorServiceTest, GetsTheNewestSessionForAnEmptyName) {
  collector_.add_session("old", api::COMPLETE);
  collector_.add_session("new", api::ACTIVE);
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
  collector_.add_session("one", api::ACTIVE);
  api::AttachAgentRequest attach;
  attach.set_address("127.0.0.1:7720");
  api::Agent agent;
  ASSERT_TRUE(call(&Stub::AttachAgent, attach, &agent).ok());
  EXPECT_EQ(agent.address(), "127.0.0.1:7720");

  api::DetachAgentRequest detach;
  detach.set_name("agents/1");
  ASSERT_TRUE(call(&Stub::DetachAgent, detach, &agent).ok());
  EXPECT_EQ(agent.state(), api::GONE);

  api::StartSessionRequest start;
  start.set_agent("agents/1");
  api::StartSessionResponse started;
  ASSERT_TRUE(call(&Stub::StartSession, start, &started).ok());
  ASSERT_EQ(started.sessions_size(), 1);
  EXPECT_EQ(started.sessions(0).agent(), "agents/1");

  api::StopSessionResponse stopped;
  ASSERT_TRUE(call(&Stub::StopSession, {}, &stopped).ok());
  ASSERT_EQ(stopped.sessions_size(), 1);
  EXPECT_EQ(stopped.sessions(0).state(), api::COMPLETE);
  EXPECT_EQ(collector_.last_argument(), "");

  api::GetManifestRequest get;
  get.set_name("sessions/one");
  api::Manifest manifest;
  ASSERT_TRUE(call(&Stub::GetManifest, get, &manifest).ok());
  EXPECT_EQ(manifest.json(), "{\"format_version\":\"2.1\"}\n");

  api::Stats stats;
  ASSERT_TRUE(call(&Stub::GetStats, {}, &stats).ok());
  EXPECT_EQ(stats.events_stored(), 123u);
}

TEST_F(CollectorServiceTest, EmptyAddressesAndNamesAreExplained) {
  api::Agent agent;
  auto status = call(&Stub::AttachAgent, {}, &agent);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("127.0.0.1:7720"));
  status = call(&Stub::DetachAgent, {}, &agent);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("ListAgents"));
}

TEST_F(CollectorServiceTest, AnEmptyStartDetailStartsItEverywhere) {
  api::DetailResponse response;
  ASSERT_TRUE(call(&Stub::StartDetail, {}, &response).ok());
  EXPECT_EQ(collector_.last_mode(), api::ON);
  EXPECT_EQ(collector_.last_detail().ByteSizeLong(), 0u);
  ASSERT_EQ(response.outcomes_size(), 1);
  EXPECT_TRUE(response.outcomes(0).ok());
}

TEST_F(CollectorServiceTest, DetailRequestsArriveWhole) {
  api::DetailRequest request;
  request.set_target("agents/1");
  request.add_threads(4711);
  request.add_functions("lua_*");
  request.mutable_duration()->set_seconds(5);
  request.mutable_pre_roll()->set_seconds(2);
  api::DetailResponse response;
  ASSERT_TRUE(call(&Stub::ArmDetail, request, &response).ok());
  EXPECT_EQ(collector_.last_mode(), api::ARMED);
  EXPECT_EQ(collector_.last_detail().SerializeAsString(), request.SerializeAsString());
  ASSERT_TRUE(call(&Stub::StopDetail, request, &response).ok());
  EXPECT_EQ(collector_.last_mode(), api::OFF);
  request.mutable_duration()->set_seconds(-1);
  for (auto method : {&Stub::ArmDetail, &Stub::StartDetail, &Stub::StopDetail}) {
    EXPECT_EQ(call(method, request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(CollectorServiceTest, MarkersAndContainersAreAskedFor) {
  api::AnnotateRequest mark;
  api::AnnotateResponse marked;
  EXPECT_EQ(call(&Stub::Annotate, mark, &marked).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  mark.set_text("door opens");
  mark.set_target("agents/1");
  ASSERT_TRUE(call(&Stub::Annotate, mark, &marked).ok());
  EXPECT_EQ(collector_.last_argument(), "agents/1|door opens");
  EXPECT_EQ(marked.outcomes(0).at_ns(), 77u);
  mark.set_text(std::string(kMaxAnnotationBytes + 1, 'x'));
  EXPECT_EQ(call(&Stub::Annotate, mark, &marked).error_code(), grpc::StatusCode::INVALID_ARGUMENT);

  api::RollContainerRequest roll;
  api::RollContainerResponse rolled;
  ASSERT_TRUE(call(&Stub::RollContainer, roll, &rolled).ok());
  EXPECT_EQ(rolled.outcomes(0).container(), "/traces/session/pid_1/capture-000002.rtc");
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

TEST_F(CollectorServiceTest, AnAnswerAfterTheClientGaveUpGoesNowhere) {
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
  collector_.add_agent("1", "lua", api::RECORDING);
  collector_.add_agent("2", "zstd", api::RECORDING);
  const auto made = context();
  api::WatchAgentsRequest request;
  request.set_filter("lua");
  const auto reader = stub_->WatchAgents(made.get(), request);
  api::AgentEvent event;
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::PRESENT);
  EXPECT_EQ(event.agent().name(), "agents/1");

  api::Agent changed = event.agent();
  changed.set_state(api::DISCONNECTED);
  api::Agent foreign;
  foreign.set_name("agents/2");
  foreign.set_process_name("zstd");
  collector_.change_agent(api::AgentEvent::CHANGED, foreign);
  collector_.change_agent(api::AgentEvent::CHANGED, changed);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::CHANGED);
  EXPECT_EQ(event.agent().state(), api::DISCONNECTED);

  collector_.change_agent(api::AgentEvent::REMOVED, changed);
  ASSERT_TRUE(reader->Read(&event));
  EXPECT_EQ(event.kind(), api::AgentEvent::REMOVED);
  made->TryCancel();
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  collector_.wait_for_watches(0);
}

TEST_F(CollectorServiceTest, AClientThatNeverReadsHoldsUpNobody) {
  const auto made = context();
  const auto reader = stub_->WatchAgents(made.get(), {});
  collector_.wait_for_watches(1);
  api::Agent agent;
  agent.set_name("agents/1");
  agent.set_status(std::string(1000, 's'));
  for (uint32_t i = 1; i <= 20'000; ++i) {
    agent.set_reconnects(i);
    collector_.change_agent(api::AgentEvent::CHANGED, agent);
  }
  api::AgentEvent event;
  do {
    ASSERT_TRUE(reader->Read(&event));
  } while (event.agent().reconnects() < 20'000);
}

TEST_F(CollectorServiceTest, WatchSessionEndsWithTheSealedSession) {
  collector_.add_session("old", api::COMPLETE);
  collector_.add_session("new", api::ACTIVE);
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
  session.set_state(api::COMPLETE);
  collector_.change_session(session, true);
  while (reader->Read(&session)) {
  }
  EXPECT_EQ(session.state(), api::COMPLETE);
  EXPECT_TRUE(reader->Finish().ok());
  collector_.wait_for_watches(0);
}

TEST_F(CollectorServiceTest, WatchingASealedSessionShowsItOnce) {
  collector_.add_session("old", api::RECOVERED);
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

  collector_.add_session("one", api::ACTIVE);
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
  api::DetailRequest request;
  request.add_functions(std::string(kMaxRequestBytes, 'f'));
  api::DetailResponse response;
  EXPECT_EQ(call(&Stub::StartDetail, request, &response).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(collector_.last_mode(), api::DETAIL_MODE_UNSPECIFIED);
}

}  // namespace
}  // namespace collect::control
