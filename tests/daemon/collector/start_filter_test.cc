// The filter that an agent asks for before it records, from the patterns to the manifest.
#include <gmock/gmock.h>

#include <functional>
#include <vector>

#include "storage/manifest/manifest.h"
#include "tests/daemon/collector/collector_fixture.h"

namespace collect::daemon {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

// An agent that asks for a filter before it records.
class StartFilterTest : public CollectorTest {
 protected:
  static FakeProcess asking() {
    FakeProcess made = process(1, "app", 10);
    made.features = wire::kFeatureStartFilter;
    return made;
  }
  void connect(FakeAgent& agent) {
    agent.on_command([this](const wire::Command& command, wire::CommandResult& result) {
      std::lock_guard lock(mutex_);
      received_.push_back(command.set_function_filter());
      result.set_at_ns(77);
    });
    ASSERT_TRUE(agent.connect(collector_->ingest_address()));
    EXPECT_EQ(agent.welcome().features(), wire::kFeatureStartFilter);
  }
  api::StartFilter outcome() {
    return shown([](const api::Agent& agent) { return agent.has_start_filter(); }).start_filter();
  }
  wire::SetFunctionFilter received() {
    EXPECT_TRUE(eventually([this] {
      std::lock_guard lock(mutex_);
      return !received_.empty();
    }));
    std::lock_guard lock(mutex_);
    return received_.empty() ? wire::SetFunctionFilter() : received_.back();
  }
  std::mutex mutex_;
  std::vector<wire::SetFunctionFilter> received_;
};

TEST_F(StartFilterTest, MakesAFilterAndReportsUnmatchedPatterns) {
  FakeAgent agent(asking());
  connect(agent);
  ASSERT_TRUE(agent.want_filter(this_program(), "collector_test_land*;no_such;", "nor_this"));
  const api::StartFilter made = outcome();
  EXPECT_EQ(made.functions_matched(), 1u);
  EXPECT_THAT(made.unmatched(), testing::UnorderedElementsAre("no_such", "nor_this"));
  EXPECT_EQ(made.error(), "");
  EXPECT_EQ(received().mode(), wire::SetFunctionFilter::ONLY);
  EXPECT_THAT(received().function_ids(), SizeIs(1));
  EXPECT_TRUE(received().last());

  wire::RecordingStart start;
  start.set_recording(1);
  start.set_start_ns(500);
  start.set_atf_version(2);
  start.set_late_ns(3'000'000);
  ASSERT_TRUE(agent.data().send(wire::FrameType::kRecordingStart, start));
  begin(agent, 1, 10);
  const auto sessions = collector_->sessions(any("app"));
  ASSERT_THAT(sessions, SizeIs(1));
  EXPECT_EQ(sessions[0].start_filter().functions_matched(), 1u);
  EXPECT_EQ(sessions[0].late_ns(), 3'000'000u);
  agent.end_recording();
  ASSERT_TRUE(agent.wait_recording_ended(1));
  const auto json = storage::read_manifest_json(fs_, sessions[0].path());
  ASSERT_TRUE(json.ok());
  EXPECT_THAT(*json, HasSubstr("function_filters"));
  EXPECT_THAT(*json, HasSubstr("collector_test_land*"));
  EXPECT_THAT(*json, HasSubstr("3 ms late"));
}

TEST_F(StartFilterTest, ExceptAloneLeavesTheOthers) {
  FakeAgent agent(asking());
  connect(agent);
  ASSERT_TRUE(agent.want_filter(this_program(), "", "collector_test_landmark"));
  EXPECT_EQ(received().mode(), wire::SetFunctionFilter::ALL_BUT);
  EXPECT_THAT(received().function_ids(), SizeIs(1));
  EXPECT_TRUE(outcome().unmatched().empty());
}

TEST_F(StartFilterTest, DoesNotRecordFunctionsItCannotLookUp) {
  FakeAgent agent(asking());
  connect(agent);
  ASSERT_TRUE(agent.want_filter(this_program(), "0xnonsense", ""));
  EXPECT_EQ(received().mode(), wire::SetFunctionFilter::ONLY);
  EXPECT_TRUE(received().function_ids().empty());
  EXPECT_NE(outcome().error(), "");
}

TEST_F(StartFilterTest, ItIsAskedForOnceOnALink) {
  FakeAgent agent(asking());
  connect(agent);
  ASSERT_TRUE(agent.want_filter({}, "main", ""));
  (void)agent.want_filter({}, "main", "");
  EXPECT_TRUE(agent.wait_refused());
}

TEST_F(StartFilterTest, WithoutTheFeatureItIsRefused) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  (void)agent.want_filter({}, "main", "");
  EXPECT_TRUE(agent.wait_refused());
}

TEST_F(StartFilterTest, PatternsBeyondTheLimitAreRefused) {
  FakeAgent agent(asking());
  connect(agent);
  (void)agent.want_filter({}, std::string(wire::kMaxFilterText + 1, 'x'), "");
  EXPECT_TRUE(agent.wait_refused());
}

}  // namespace
}  // namespace collect::daemon
