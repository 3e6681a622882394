// What is asked of a process, or by it, and can't be had now: everybody is answered, and once.
#include <gmock/gmock.h>

#include "tests/daemon/ingest/peer/peer_fixture.h"

namespace collect::ingest {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using wire::FrameType;

class PeerOrdersTest : public PeerTest {
 protected:
  // Keeps what is answered: the error's words, or nothing.
  template <class T>
  Answer<T> heard() {
    return [this](Result<T> result) {
      answers_.push_back(result.ok() ? "" : result.error().message);
      if (!result.ok()) codes_.push_back(result.code());
    };
  }
  size_t stop_commands() {
    size_t count = 0;
    while (const auto frame = next(control_, FrameType::kCommand)) {
      count += frame->parsed<wire::Command>().has_stop_recording() ? 1 : 0;
    }
    return count;
  }

  std::vector<std::string> answers_;
  std::vector<Code> codes_;
};

TEST_F(PeerOrdersTest, RefusesOrdersWithoutARecording) {
  begin();
  connect();
  peer_->annotate(1, "a marker", heard<uint64_t>());
  peer_->roll_container(heard<std::string>());
  peer_->cut(heard<storage::SessionCut>());
  peer_->watch_events({}, heard<std::string>());
  peer_->stop_recording(heard<SessionSnapshot>());
  const std::string expected = "agents/" + std::to_string(shown().id) + " does not record now";
  EXPECT_THAT(answers_, AllOf(SizeIs(5), Each(expected)));
  EXPECT_THAT(codes_, Each(Code::kNotFound));
}

TEST_F(PeerOrdersTest, SendsOneStopCommand) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  peer_->stop_recording(heard<SessionSnapshot>());
  peer_->stop_recording(heard<SessionSnapshot>());
  EXPECT_EQ(stop_commands(), 1u);
  EXPECT_THAT(answers_, IsEmpty());
  end_recording();
  ASSERT_TRUE(loop_.run_until([this] { return answers_.size() == 2; }));
  EXPECT_THAT(answers_, Each(""));
}

// And where it comes back with it, that recording is over for good.
TEST_F(PeerOrdersTest, StopsTheRecordingOfAnAbsentAgent) {
  begin();
  connect();
  start_recording();
  ASSERT_TRUE(session_in(SessionState::kActive).has_value());
  peer_->drop_links("the cable");
  run();
  peer_->stop_recording(heard<SessionSnapshot>());
  ASSERT_TRUE(loop_.run_until([this] { return answers_.size() == 1; }));
  EXPECT_THAT(answers_, Each(""));
  const auto stopped = session_in(SessionState::kRecovered);
  ASSERT_TRUE(stopped.has_value());
  EXPECT_EQ(stopped->status, "stopped while its agent was disconnected");
  connect();
  start_recording();
  const auto ack = wait_for(control_, FrameType::kAck);
  ASSERT_TRUE(ack.has_value());
  EXPECT_EQ(ack->parsed<wire::Ack>().recording_ended(), 1u);
  EXPECT_EQ(reported_.session_count(), 1u);
}

TEST_F(PeerOrdersTest, ModulesThatFindNoMemoryAreRefusedForNow) {
  process_.features = wire::kFeatureStartFilter;
  options_.accounted_memory = kLeastMemory;
  begin();
  principal::Lease others(core_->budget.account(principal::Principal::of_uid(1)),
                          principal::Resource::kMemory);
  others.set(options_.accounted_memory);
  wire::Modules modules;
  modules.add_modules()->set_path("/bin/a");
  connect();
  say(control_, FrameType::kModules, modules);
  for (fakes::FrameSocket* channel : {&control_, &data_}) {
    const auto refuse = next(*channel, FrameType::kRefuse);
    ASSERT_TRUE(refuse.has_value());
    EXPECT_EQ(refuse->parsed<wire::Refuse>().code(), wire::REFUSE_LIMIT);
    EXPECT_TRUE(refuse->parsed<wire::Refuse>().retry());
  }
  EXPECT_FALSE(peer_->connected());
  EXPECT_THAT(peer_->modules(), IsEmpty());
  others.set(0);
  connect();
  say(control_, FrameType::kModules, modules);
  EXPECT_TRUE(peer_->connected());
  EXPECT_THAT(peer_->modules(), SizeIs(1));
}

}  // namespace
}  // namespace collect::ingest
