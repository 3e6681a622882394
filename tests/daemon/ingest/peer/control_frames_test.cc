// The frames of a control channel by hand: what they change, and which end the connection.
#include "daemon/ingest/peer/control_frames.h"

#include <gmock/gmock.h>

#include "tests/daemon/ingest/peer/peer_parts.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using wire::FrameType;

class Asked final : public IngestObserver {
 public:
  void agent_changed(const AgentSnapshot&) override { ++agents_shown; }
  void agent_removed(AgentId) override {}
  void session_changed(const SessionSnapshot&) override { ++sessions_shown; }
  void filter_wanted(const AgentSnapshot& agent, FilterRequest wanted) override {
    EXPECT_EQ(agent.process_name, "fake");
    wishes.push_back(std::move(wanted));
  }
  int agents_shown = 0;
  int sessions_shown = 0;
  std::vector<FilterRequest> wishes;
};

class ControlFramesTest : public PeerPartsTest {
 protected:
  // The frames' own observer: what is asked for goes there.
  void begin_frames() {
    begin();
    frames_ = std::make_unique<ControlFrames>(asked_, parts_->profile, parts_->recordings,
                                              parts_->commands, *parts_->modules);
  }
  std::string say(FrameType type, const google::protobuf::MessageLite& message) {
    return said(*frames_, type, message);
  }
  std::string want(const std::string& only, const std::string& except) {
    wire::WantFunctionFilter want;
    want.set_only(only);
    want.set_except(except);
    return say(FrameType::kWantFunctionFilter, want);
  }

  Asked asked_;
  std::unique_ptr<ControlFrames> frames_;
};

TEST_F(ControlFramesTest, FilterIsAskedForOncePerChannel) {
  process_.features = wire::kFeatureStartFilter;
  begin_frames();
  EXPECT_EQ(say(FrameType::kModules, modules_of({"/bin/a", "/lib/b.so"})), "");
  EXPECT_GT(used(principal::Resource::kMemory), 0u);
  EXPECT_EQ(want("one;;two*;", "x"), "");
  ASSERT_EQ(asked_.wishes.size(), 1u);
  EXPECT_THAT(asked_.wishes[0].only, ElementsAre("one", "two*"));
  EXPECT_THAT(asked_.wishes[0].except, ElementsAre("x"));
  ASSERT_EQ(asked_.wishes[0].modules.size(), 2u);
  EXPECT_EQ(asked_.wishes[0].modules[1].path, "/lib/b.so");
  EXPECT_THAT(want("three", ""), HasSubstr("asked for twice"));
  EXPECT_THAT(say(FrameType::kModules, modules_of({"/bin/c"})),
              HasSubstr("no function filter is asked for"));
  frames_->restart();
  EXPECT_EQ(want("", ""), "");
  ASSERT_EQ(asked_.wishes.size(), 2u);
  EXPECT_THAT(asked_.wishes[1].only, IsEmpty());
}

TEST_F(ControlFramesTest, WantsAFilterOnlyIfAgreedBeforeARecording) {
  begin_frames();
  EXPECT_THAT(want("one", ""), HasSubstr("not agreed on"));
  EXPECT_THAT(say(FrameType::kModules, modules_of({"/bin/a"})), HasSubstr("no function filter"));
  process_.features = wire::kFeatureStartFilter;
  begin_frames();
  const std::string longest(wire::kMaxFilterText, 'f');
  EXPECT_THAT(want(longest + "f", ""), HasSubstr("longer than the protocol allows"));
  EXPECT_THAT(want("", longest + "f"), HasSubstr("longer than the protocol allows"));
  ASSERT_FALSE(record(1).has_value());
  EXPECT_THAT(say(FrameType::kModules, modules_of({"/bin/a"})), HasSubstr("no function filter"));
  EXPECT_EQ(want(longest, longest), "");
}

TEST_F(ControlFramesTest, HeartbeatShowsWhatMoved) {
  begin_frames();
  ASSERT_FALSE(record(1).has_value());
  ASSERT_TRUE(loop_.run_until([this] { return recordings().opened() != nullptr; }));
  wire::Heartbeat beat;
  beat.set_detail(wire::DETAIL_ARMED);
  beat.set_recording(1);
  beat.set_lost_without_stream(6);
  EXPECT_EQ(say(FrameType::kHeartbeat, beat), "");
  EXPECT_EQ(parts_->profile.shown().detail, DetailMode::kArmed);
  EXPECT_TRUE(
      reported_.was_shown([](const auto& one) { return one.detail == DetailMode::kArmed; }));
  beat.set_recording(2);  // of which nothing has come
  beat.set_lost_without_stream(7);
  EXPECT_EQ(say(FrameType::kHeartbeat, beat), "");
  recordings().end(end_of(1));
  EXPECT_EQ(sealed_manifest().lost_without_stream, 6u);
}

TEST_F(ControlFramesTest, CountersAreTakenAndAnswersGivenOn) {
  begin_frames();
  wire::Counters counters;
  counters.add_counters()->set_value(1);
  EXPECT_NE(say(FrameType::kCounters, counters), "") << "it has no name";
  EXPECT_EQ(verdict_->code, wire::REFUSE_PROTOCOL);
  counters.mutable_counters(0)->set_name("frames");
  EXPECT_EQ(say(FrameType::kCounters, counters), "");
  EXPECT_EQ(say(FrameType::kHeartbeat, wire::Heartbeat()), "");
  EXPECT_EQ(parts_->profile.shown().counters.at("frames"), 1);

  bool is_answered = false;
  parts_->commands.issue({}, [&](const Result<wire::CommandResult>&) { is_answered = true; });
  wire::CommandResult result;
  result.set_command_id(1);
  EXPECT_EQ(say(FrameType::kCommandResult, result), "");
  EXPECT_TRUE(is_answered);
}

TEST_F(ControlFramesTest, RefusesBrokenMessagesAndDataFrames) {
  begin_frames();
  const uint8_t bytes[] = {0xff, 0xff};
  for (const FrameType type :
       {FrameType::kHeartbeat, FrameType::kCommandResult, FrameType::kModules,
        FrameType::kWantFunctionFilter, FrameType::kCounters}) {
    wire::Frame frame;
    frame.type = type;
    frame.body = bytes;
    const Verdict verdict = frames_->take(frame);
    ASSERT_TRUE(verdict.has_value()) << static_cast<int>(type);
    EXPECT_THAT(verdict->reason, HasSubstr("the body is no collect.wire."));
  }
  for (const FrameType type : {FrameType::kDial, FrameType::kHello, FrameType::kProof,
                               FrameType::kRecordingStart, FrameType::kStalls, FrameType::kAck}) {
    EXPECT_THAT(say(type, wire::Bye()), HasSubstr("does not belong on the control channel"));
  }
  EXPECT_EQ(say(static_cast<FrameType>(200), wire::Bye()), "") << "of a later version";
}

}  // namespace
}  // namespace collect::ingest
