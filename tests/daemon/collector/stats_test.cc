// What the collector counts, each number for itself.
#include <gmock/gmock.h>

#include <fstream>
#include <set>
#include <string>

#include "formats/core/version.h"
#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using fakes::FrameSocket;

class CollectorStatsTest : public CollectorTest {
 protected:
  bool becomes(const std::function<bool(const api::Stats&)>& holds) {
    return eventually([&] { return holds(collector_->stats()); });
  }
};

TEST_F(CollectorStatsTest, CountsAreZeroBeforeTheFirstAgent) {
  const api::Stats stats = collector_->stats();
  EXPECT_EQ(stats.version(), kVersion);
  EXPECT_EQ(stats.root(), root_);
  EXPECT_EQ(stats.ingest_address(), collector_->ingest_address());
  EXPECT_EQ(stats.agents_connected(), 0u);
  EXPECT_EQ(stats.sessions_active(), 0u);
  EXPECT_EQ(stats.connections_accepted(), 0u);
  EXPECT_EQ(stats.connections_refused(), 0u);
  EXPECT_EQ(stats.bytes_received(), 0u);
  EXPECT_EQ(stats.bytes_stored(), 0u);
  EXPECT_EQ(stats.pages_stored(), 0u);
  EXPECT_EQ(stats.pages_decoded(), 0u);
  EXPECT_EQ(stats.pages_bad_checksum(), 0u);
  EXPECT_EQ(stats.events_stored(), 0u);
  EXPECT_EQ(stats.events_lost(), 0u);
  EXPECT_EQ(stats.detail_records_stored(), 0u);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm").ignore(64, ' ') >> pages;
  const uint64_t page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(stats.resident_bytes() % page_bytes, 0u);
  EXPECT_GT(stats.resident_bytes(), pages * page_bytes / 2);
  EXPECT_LT(stats.resident_bytes(), pages * page_bytes * 2);
}

TEST_F(CollectorStatsTest, EventsPagesAndBytesAreCounted) {
  FakeProcess encoding = process(1, "app", 10);
  encoding.features = wire::kFeatureColumns;
  FakeAgent agent(encoding);
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.events_stored() == 100; }));
  api::Stats stats = collector_->stats();
  EXPECT_EQ(stats.agents_connected(), 1u);
  EXPECT_EQ(stats.sessions_active(), 1u);
  EXPECT_EQ(stats.connections_accepted(), 2u);
  EXPECT_EQ(stats.connections_refused(), 0u);
  EXPECT_EQ(stats.pages_stored(), 1u);
  EXPECT_EQ(stats.pages_decoded(), 0u);
  EXPECT_EQ(stats.bytes_stored(), 3'200u);
  EXPECT_EQ(stats.detail_records_stored(), 0u);
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.bytes_received() > 3'200; }));
  // A page that came encoded.
  ASSERT_TRUE(agent.data().send_bytes(fakes::encoded_page_frame_bytes(
      fakes::index_page_header(1, 100, 50), fakes::index_events(100, 50))));
  if (agent.wait_stored(1, 150)) {
    stats = collector_->stats();
    EXPECT_EQ(stats.pages_stored(), 2u);
    EXPECT_EQ(stats.pages_decoded(), 1u);
    EXPECT_EQ(stats.events_stored(), 150u);
  } else {
    ADD_FAILURE() << "the page is not stored";
  }
  ASSERT_TRUE(agent.close_stream(1, 150));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.sessions_active() == 0; }));
  agent.say_goodbye(false);
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.agents_connected() == 0; }));
  EXPECT_TRUE(collector_->stop(fakes::kPatience)) << "there is nothing left to do";
}

TEST_F(CollectorStatsTest, PageWithAWrongChecksumIsCounted) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  std::vector<uint8_t> bytes = fakes::index_events(10, 10);
  std::vector<uint8_t> frame = fakes::page_frame_bytes(fakes::index_page_header(1, 10, 10), bytes);
  frame.back() ^= 1;
  ASSERT_TRUE(agent.data().send_bytes(frame));
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.pages_bad_checksum() == 1; }));
  EXPECT_EQ(collector_->stats().events_stored(), 10u);
}

TEST_F(CollectorStatsTest, StrangersAreRefused) {
  FrameSocket stranger = FrameSocket::connect(collector_->ingest_address());
  ASSERT_TRUE(stranger.send(wire::FrameType::kHeartbeat, wire::Heartbeat()));
  EXPECT_TRUE(stranger.ends());
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.connections_refused() == 1; }));
}

// The requests of the methods that answer once and are served by a class of the collector. The
// service answers the others itself: from what the collector shows, detail by a DetailCommand, and
// what depends on the caller by a CallOf.
std::set<std::string> requests_of_methods() {
  const std::set<std::string> by_the_service = {
      "ListAgentsRequest",   "GetAgentRequest",   "ListDevicesRequest",   "GetDeviceRequest",
      "ListSessionsRequest", "GetSessionRequest", "GetStatsRequest",      "ArmDetailRequest",
      "StartDetailRequest",  "StopDetailRequest", "AttachProcessRequest", "DetachProcessRequest"};
  const auto* const service =
      api::GetStatsRequest::descriptor()->file()->FindServiceByName("Collector");
  std::set<std::string> requests;
  for (int i = 0; i < service->method_count(); ++i) {
    if (service->method(i)->server_streaming()) continue;
    requests.insert(service->method(i)->input_type()->name());
  }
  for (const std::string& request : by_the_service) EXPECT_EQ(requests.erase(request), 1u);
  return requests;
}

TEST_F(CollectorStatsTest, EveryMethodIsServed) {
  std::set<std::string> asked;
  const auto expect_served = [&]<class Request, class Response>(const Request& request,
                                                                Waiting<Response> answered) {
    if constexpr (requires { Request::descriptor(); }) asked.insert(Request::descriptor()->name());
    collector_->methods().call(request, answered.callback());
    const auto answer = answered.get();
    if (answer.ok()) return;
    EXPECT_THAT(answer.error().message, ::testing::Not(::testing::HasSubstr("does not serve")))
        << typeid(Request).name();
  };
  expect_served(api::AttachAgentRequest(), Waiting<api::Agent>());
  expect_served(api::DetachAgentRequest(), Waiting<api::Agent>());
  expect_served(control::CallOf<api::AttachProcessRequest>(),
                Waiting<api::AttachProcessResponse>());
  expect_served(control::CallOf<api::DetachProcessRequest>(),
                Waiting<api::DetachProcessResponse>());
  expect_served(api::ListThreadsRequest(), Waiting<api::ListThreadsResponse>());
  expect_served(api::StartSessionRequest(), Waiting<api::StartSessionResponse>());
  expect_served(api::StopSessionRequest(), Waiting<api::StopSessionResponse>());
  expect_served(api::GetManifestRequest(), Waiting<api::Manifest>());
  expect_served(api::ListFilesRequest(), Waiting<api::ListFilesResponse>());
  expect_served(api::SnapshotSessionRequest(), Waiting<api::Session>());
  expect_served(api::PackSessionRequest(), Waiting<api::Session>());
  expect_served(api::UnpackSessionRequest(), Waiting<api::Session>());
  expect_served(api::DeleteSessionRequest(), Waiting<api::DeleteSessionResponse>());
  expect_served(control::DetailCommand(), Waiting<std::vector<api::DetailOutcome>>());
  expect_served(api::SetTriggersRequest(), Waiting<api::SetTriggersResponse>());
  expect_served(api::GetTriggersRequest(), Waiting<api::GetTriggersResponse>());
  expect_served(api::SetFunctionFilterRequest(), Waiting<api::SetFunctionFilterResponse>());
  expect_served(api::AnnotateRequest(), Waiting<api::AnnotateResponse>());
  expect_served(api::RollContainerRequest(), Waiting<api::RollContainerResponse>());
  expect_served(api::GetRulesRequest(), Waiting<api::Rules>());
  expect_served(api::SetRulesRequest(), Waiting<api::Rules>());
  EXPECT_EQ(asked, requests_of_methods()) << "a method that this test does not know";
}

}  // namespace
}  // namespace collect::daemon
