// Calls that run, and watches that the end of the server ends.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "daemon/control/service/reactors.h"
#include "tests/daemon/control/server_fixture.h"

namespace collect::control {
namespace {

TEST(LiveCallsTest, EndWaitsForTheLastCall) {
  for (int round = 0; round < 200; ++round) {
    LiveCalls live;
    live.enter();
    live.enter();
    std::atomic<bool> last_gone = false;
    std::thread waits([&] {
      live.wait_until_idle();
      EXPECT_TRUE(last_gone);
    });
    live.leave();
    // Where the other thread waits by now, it continues waiting; where it does not yet, it will.
    if (round % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    last_gone = true;
    live.leave();
    waits.join();
  }
}

TEST(LiveCallsTest, LimitsWatchesAndRefusesThemAtTheEnd) {
  LiveCalls live;
  size_t ended = 0;
  std::vector<uint64_t> ids;
  for (size_t i = 0; i < kMaxLiveWatches; ++i) ids.push_back(live.add_watch([&] { ++ended; }));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 0u), 0);
  EXPECT_EQ(live.add_watch([&] { ++ended; }), 0u);
  live.remove_watch(ids[7]);
  EXPECT_NE(live.add_watch([&] { ++ended; }), 0u);
  live.remove_watch(ids[8]);
  EXPECT_FALSE(live.closing());
  live.end_watches();
  EXPECT_TRUE(live.closing());
  EXPECT_EQ(ended, kMaxLiveWatches - 1);
  EXPECT_EQ(live.add_watch([&] { ++ended; }), 0u) << "there is room, but this is the end";
}

class LiveWatchesTest : public ServerFixture {};

// A watch that is over leaves its place, however many there were before.
TEST_F(LiveWatchesTest, ManyWatchesOneAfterTheOther) {
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  for (size_t i = 0; i < kMaxLiveWatches + 2; ++i) {
    const auto made = context();
    const auto stream = stub_->WatchAgents(made.get(), api::WatchAgentsRequest());
    api::AgentEvent first;
    ASSERT_TRUE(stream->Read(&first)) << i;
    made->TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
}

TEST_F(LiveWatchesTest, FilterIsPassedOnAndItsOutcomeComesBack) {
  api::SetFunctionFilterRequest request;
  request.mutable_target()->set_agent("agents/1");
  request.add_only("parse*");
  api::SetFunctionFilterResponse response;
  const auto status = call(&api::Collector::Stub::SetFunctionFilter, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ASSERT_EQ(response.outcomes_size(), 1);
  EXPECT_EQ(response.outcomes(0).agent(), "agents/1");
  EXPECT_FALSE(response.outcomes(0).has_error());
  EXPECT_EQ(response.outcomes(0).functions_matched(), 12u);
  EXPECT_EQ(collector_.last_filter().SerializeAsString(), request.SerializeAsString());
}

}  // namespace
}  // namespace collect::control
