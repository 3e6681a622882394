// The filter that the settings ask for: what is asked, of whom and when, and what follows.
#include "agent/drain/start_filter.h"

#include "agent/drain/link/status.h"
#include "tests/agent/drain/drain_parts.h"

namespace collect::agent {
namespace {

using wire::FrameType;

constexpr uint64_t kFeatures = wire::kFeatureStartFilter;

class StartFilterPartTest : public DrainPartsTest {
 protected:
  StartFilterPartTest() {
    fake::add_module("/usr/bin/program");
    std::memcpy(settings().only, "parse_*;lex", 12);
    std::memcpy(settings().except, "parse_char", 11);
    filter().prepare();
    control().holds.store(true);
  }
  ~StartFilterPartTest() override { enable_log(false); }

  std::vector<FrameType> asked(uint64_t features = kFeatures) {
    std::vector<FrameType> types;
    (void)filter().ask(features, *out_);
    for (const SentFrame& frame : take_frames(*out_)) {
      types.push_back(frame.type);
      if (frame.type != FrameType::kWantFunctionFilter) continue;
      wire::WantFunctionFilter want;
      EXPECT_TRUE(want.ParseFromString(frame.body));
      EXPECT_EQ(want.only(), "parse_*;lex");
      EXPECT_EQ(want.except(), "parse_char");
    }
    return types;
  }
  template <class Act>
  static std::string lines_of(Act act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  }
  StartFilter& filter() { return parts_->start_filter; }
  DrainControl& control() { return parts_->control; }

  const std::vector<FrameType> question_{FrameType::kModules, FrameType::kWantFunctionFilter};
  std::unique_ptr<SendBuffer> out_ = std::make_unique<SendBuffer>();
};

TEST_F(StartFilterPartTest, IsWantedWithAPatternOnly) {
  EXPECT_TRUE(filter().is_wanted());
  settings().only[0] = '\0';
  filter().prepare();
  EXPECT_TRUE(filter().is_wanted());
  settings().except[0] = '\0';
  filter().prepare();
  EXPECT_FALSE(filter().is_wanted());
}

TEST_F(StartFilterPartTest, AsksOncePerLinkAfterTheModules) {
  EXPECT_FALSE(control().filter_asked);
  EXPECT_EQ(asked(), question_);
  EXPECT_TRUE(control().filter_asked);
  EXPECT_TRUE(asked().empty());
  filter().link_is_down();
  EXPECT_FALSE(control().filter_asked) << "no one is there who would answer";
  EXPECT_EQ(asked(), (std::vector<FrameType>{FrameType::kWantFunctionFilter}))
      << "the link's begin sends the modules again";
  filter().link_is_down();
  parts_->shipper.metadata_sender().begin_link();
  EXPECT_EQ(asked(), question_);
}

TEST_F(StartFilterPartTest, AsksAgainWhenThereWasNoRoom) {
  const collect_wire_Bye bye = collect_wire_Bye_init_zero;
  while (out_->push(FrameType::kBye, collect_wire_Bye_fields, &bye)) {
  }
  EXPECT_TRUE(filter().ask(kFeatures, *out_)) << "there is something to flush";
  EXPECT_FALSE(control().filter_asked);
  out_->clear();
  EXPECT_EQ(asked(), question_);
  EXPECT_TRUE(control().filter_asked);
}

TEST_F(StartFilterPartTest, SkipsACollectorThatMakesNoFilters) {
  enable_log(true);
  const std::string lines = lines_of([&] {
    EXPECT_TRUE(asked(~kFeatures).empty());
    EXPECT_TRUE(asked(~kFeatures).empty());
  });
  EXPECT_TRUE(
      lines.ends_with(": this collector makes no function filter, so nothing is recorded\n"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << "it is said once on a link";
  EXPECT_FALSE(control().filter_asked);
  EXPECT_TRUE(filter().is_wanted());
  filter().link_is_down();
  EXPECT_EQ(asked(), question_) << "the next one may make one";
}

TEST_F(StartFilterPartTest, ReceivedFilterBeginsTheRecordingAndReleasesTheProgram) {
  EXPECT_EQ(asked(), question_);
  filter().has_come();
  EXPECT_FALSE(filter().is_wanted());
  EXPECT_TRUE(parts_->recording.is_running());
  EXPECT_FALSE(control().holds);
  parts_->recording.drop();
  filter().has_come();  // a filter that someone sets later
  EXPECT_FALSE(is_recording());
}

TEST_F(StartFilterPartTest, IdleAgentStaysIdle) {
  settings().start_recording = false;
  filter().has_come();
  EXPECT_FALSE(filter().is_wanted());
  EXPECT_FALSE(is_recording());
  EXPECT_FALSE(control().holds);
}

TEST_F(StartFilterPartTest, ReportsOnceThatARecordingBeginsLate) {
  enable_log(true);
  EXPECT_EQ(lines_of([&] { filter().say_if_late(); }), "") << "it is held";
  control().released_ns.store(now_ns() - 5'000'000);
  const std::string lines = lines_of([&] {
    filter().say_if_late();
    filter().say_if_late();
  });
  EXPECT_TRUE(lines.ends_with(
      ": no function filter has come yet; the program continues, and is recorded when it comes\n"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1);
  filter().has_come();
  ASSERT_TRUE(parts_->shipper.metadata_sender().send(parts_->shipper.streams(), *out_));
  const auto frames = take_frames(*out_);
  wire::RecordingStart start;
  ASSERT_EQ(frames.at(0).type, FrameType::kRecordingStart);
  ASSERT_TRUE(start.ParseFromString(frames[0].body));
  EXPECT_GE(start.late_ns(), 5'000'000u);
  EXPECT_LE(start.late_ns(), now_ns() - control().released_ns);
}

}  // namespace
}  // namespace collect::agent
