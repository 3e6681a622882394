// A Link that may connect to several collectors.
#include "agent/drain/link/status.h"
#include "tests/agent/drain/link/link_fixture.h"

namespace collect::agent {
namespace {

class LinkOfSeveralTest : public LinkTest {
 protected:
  LinkOfSeveralTest() { connect_to(collector_.address() + "," + other_.address()); }

  // Which of the two the agent connects to now.
  bool goes_to_other() {
    pollfd waiting[2] = {{collector_.listener(), POLLIN, 0}, {other_.listener(), POLLIN, 0}};
    EXPECT_EQ(poll(waiting, 2, 60'000), 1);
    return waiting[1].revents != 0;
  }
  void refuse(bool retry) {
    wire::Refuse refuse;
    refuse.set_code(wire::REFUSE_STORAGE);
    refuse.set_reason("a full disk");
    refuse.set_retry(retry);
    data_.send(FrameType::kRefuse, refuse);
    wire::Frame frame;
    for (int i = 0; i < 5000 && link_->is_up(); ++i) {
      (void)link_->read(now_ms_, link_->data());
      if (link_->next_frame(now_ms_, link_->data(), frame)) {
        link_->refused(now_ms_, link_->data(), frame.body);
      }
      ::usleep(1000);
    }
    ASSERT_FALSE(link_->is_up());
  }

  ScriptedCollector other_;
};

TEST_F(LinkOfSeveralTest, BrokenLinkIsMadeAgainToTheSameCollector) {
  step();
  EXPECT_FALSE(goes_to_other());
  come_up();
  cut();
  (void)next_attempt();
  EXPECT_FALSE(goes_to_other());
}

TEST_F(LinkOfSeveralTest, LeavesASilentCollectorAtOnceForTheNext) {
  step();
  control_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->control());
  step(5000);
  EXPECT_EQ(next_attempt(), 0u);
  EXPECT_TRUE(goes_to_other());
  EXPECT_EQ(link_->rounds_failed(), 0u) << "there is one more";
}

TEST_F(LinkOfSeveralTest, OneThatRefusesIsLeftForTheNext) {
  for (const bool retry : {true, false}) {
    SCOPED_TRACE(retry);
    step();
    come_up();
    refuse(retry);
    EXPECT_FALSE(link_->given_up());
    EXPECT_EQ(next_attempt(), 0u);
    EXPECT_TRUE(goes_to_other());
    other_.accept().close();
    for (int i = 0; i < 5000 && is_trying(); ++i) step();
    (void)next_attempt();
    // Where it may come back to the first one, it does.
    EXPECT_EQ(goes_to_other(), !retry);
  }
}

TEST_F(LinkOfSeveralTest, LeavesACollectorThatStopsForTheNext) {
  step();
  come_up();
  link_->collector_leaves(now_ms_, false);
  EXPECT_FALSE(link_->given_up());
  EXPECT_EQ(next_attempt(), 0u);
  EXPECT_TRUE(goes_to_other());
}

TEST_F(LinkTest, BothConnectionsLeadToOneCollector) {
  connect_to(collector_.address());
  step();
  control_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->control());
  collector_.id = std::string(wire::kCollectorIdBytes, 'a');
  welcome(control_, link_->control(), 1000);
  data_ = collector_.accept();
  step_until(ChannelStep::kGreeting, link_->data());
  const auto hello = data_.expect<wire::Hello>(FrameType::kHello);
  collector_.id = std::string(wire::kCollectorIdBytes, 'b');
  collector_.send_challenge(data_, hello, false);
  for (int i = 0; i < 5000 && is_trying(); ++i) step();
  EXPECT_EQ(std::string(status()),
            "no link to the collector: its address led to two collectors: it must lead to one; "
            "trying again");
}

}  // namespace
}  // namespace collect::agent
