// What triggers see, and what comes of it: detail, markers and their sentences.
#include <gmock/gmock.h>

#include "formats/atf/layout.h"
#include "storage/manifest/manifest.h"
#include "tests/daemon/collector/agent_commands_fixture.h"

namespace collect::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// The fake agent's events: the call of number N, a microsecond before its return.
constexpr uint64_t kFirstNs = 1'000'000;
std::string function_of(uint64_t call) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(0x1234 + call));
  return text;
}

class CollectorTriggersTest : public CollectorOrdersTest {
 protected:
  void begin_app(FakeAgent& agent) {
    connect(agent);
    begin(agent, 1, 2);
    shown("app", api::AGENT_STATE_RECORDING);
  }
  // One event in a page of its own.
  void send(FakeAgent& agent, uint64_t seq, atf::EventKind kind) {
    std::vector<uint8_t> event = fakes::index_events(seq, 1);
    event[offsetof(atf::IndexEventV2, event_kind)] = static_cast<uint8_t>(kind);
    ASSERT_TRUE(agent.data().send_page(fakes::index_page_header(1, seq, 1), event));
    ASSERT_TRUE(agent.wait_stored(1, seq + 1));
  }
  void call(FakeAgent& agent, uint64_t number) { send(agent, 2 * number, atf::EventKind::kCall); }
  void end_call(FakeAgent& agent, uint64_t number) {
    send(agent, 2 * number + 1, atf::EventKind::kReturn);
  }
  bool wait_received(size_t count) {
    return eventually([&] { return received().size() >= count; });
  }
  std::vector<uint32_t> fired() {
    std::vector<uint32_t> counts;
    const auto now = triggers_of({});
    if (!now.ok() || now->outcomes_size() != 1) return counts;
    for (const api::Trigger& trigger : now->outcomes(0).triggers()) {
      counts.push_back(trigger.fired_count());
    }
    return counts;
  }
  std::vector<storage::Marker> markers_of(FakeAgent& agent, uint64_t events) {
    const auto session = collector_->session("");
    EXPECT_TRUE(agent.close_stream(1, events));
    EXPECT_TRUE(agent.end_recording());
    EXPECT_TRUE(agent.wait_recording_ended(1));
    Waiting<api::StopSessionResponse> sealed;
    collector_->methods().call(stop_request(any(session->name())), sealed.callback());
    EXPECT_TRUE(sealed.get().ok());
    const auto manifest = storage::read_manifest(fs_, session->path());
    EXPECT_TRUE(manifest.ok());
    return manifest.ok() ? manifest->markers : std::vector<storage::Marker>();
  }
};

TEST_F(CollectorTriggersTest, EachKindHasItsSentenceAtItsTime) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  api::SetTriggersRequest request;
  api::Trigger& called = *request.add_triggers();
  called.add_functions(function_of(1));
  called.set_times(1);
  api::Trigger& slow = *request.add_triggers();
  slow.set_event(api::Trigger::EVENT_LONG_CALL);
  slow.add_functions(function_of(2));
  slow.mutable_longer_than()->set_nanos(999);
  slow.set_times(1);
  api::Trigger& thrown = *request.add_triggers();
  thrown.set_event(api::Trigger::EVENT_EXCEPTION);
  thrown.add_functions(function_of(3));
  thrown.set_times(1);
  api::Trigger& counter = *request.add_triggers();
  counter.set_event(api::Trigger::EVENT_COUNTER);
  counter.set_counter("depth");
  counter.set_above(10);
  counter.set_times(1);
  const auto set = set_triggers(request);
  ASSERT_TRUE(set.ok()) << to_string(set.error());
  EXPECT_EQ(set->functions_matched(), 3u);
  EXPECT_EQ(set->agent(), "agents/1");
  EXPECT_THAT(fired(), ElementsAre(0, 0, 0, 0));

  call(agent, 1);
  ASSERT_TRUE(wait_received(1));
  end_call(agent, 1);
  EXPECT_THAT(fired(), ElementsAre(1, 0, 0, 0));
  call(agent, 2);
  end_call(agent, 2);
  ASSERT_TRUE(wait_received(2));
  EXPECT_THAT(fired(), ElementsAre(1, 1, 0, 0));
  call(agent, 3);
  send(agent, 7, atf::EventKind::kException);
  ASSERT_TRUE(wait_received(3));
  EXPECT_THAT(fired(), ElementsAre(1, 1, 1, 0));
  ASSERT_TRUE(agent.send_counter("depth", 12, 12));
  ASSERT_TRUE(wait_received(4));
  EXPECT_THAT(fired(), ElementsAre(1, 1, 1, 1));
  for (const wire::Command& command : received()) {
    EXPECT_EQ(command.set_detail().mode(), wire::DETAIL_ON);
    EXPECT_EQ(command.set_detail().duration_ns(), 0u);
    EXPECT_EQ(command.set_detail().pre_roll_ns(), 0u);
    EXPECT_EQ(command.set_detail().function_ids_size(), 0);
  }

  const std::vector<storage::Marker> markers = markers_of(agent, 8);
  ASSERT_THAT(markers, SizeIs(4));
  const auto in_order = [&](size_t at) { return markers[at].text; };
  EXPECT_EQ(in_order(0), "trigger 1: a call of 0x1235 (0x1235)");
  EXPECT_EQ(markers[0].at_ns, kFirstNs + 2'000);
  EXPECT_EQ(in_order(1), "trigger 2: a call of 0x1236 (0x1236) takes 0.001 ms");
  EXPECT_EQ(markers[1].at_ns, kFirstNs + 5'000);
  EXPECT_EQ(in_order(2), "trigger 3: an exception left 0x1237 (0x1237)");
  EXPECT_EQ(markers[2].at_ns, kFirstNs + 7'000);
  EXPECT_EQ(in_order(3), "trigger 4: depth is 12, above 10");
}

TEST_F(CollectorTriggersTest, ThreadThatIsBlockedForLongFires) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  api::SetTriggersRequest request;
  api::Trigger& blocked = *request.add_triggers();
  blocked.set_event(api::Trigger::EVENT_BLOCKED);
  blocked.mutable_longer_than()->set_nanos(20'000'000);
  blocked.set_times(1);
  const auto set = set_triggers(request);
  ASSERT_TRUE(set.ok()) << to_string(set.error());
  call(agent, 1);
  wire::Stalls stalls;
  for (const uint64_t ms : {20, 21}) {
    wire::Stall& stall = *stalls.add_stalls();
    stall.set_stream_id(1);
    stall.set_kind(wire::Stall::BLOCKED);
    stall.set_first_ns(kFirstNs + 1'000'000'000 * (ms - 19));
    stall.set_last_ns(stall.first_ns() + ms * 1'000'000);
  }
  ASSERT_TRUE(agent.data().send(wire::FrameType::kStalls, stalls));
  ASSERT_TRUE(wait_received(1));
  EXPECT_THAT(fired(), ElementsAre(1));
  const std::vector<storage::Marker> markers = markers_of(agent, 3);
  ASSERT_THAT(markers, SizeIs(1));
  EXPECT_EQ(markers[0].text, "trigger 1: a thread was blocked for 21 ms");
  EXPECT_EQ(markers[0].at_ns, kFirstNs + 2'021'000'000);
}

TEST_F(CollectorTriggersTest, NeedsAnAgent) {
  api::SetTriggersRequest request;
  request.add_triggers()->add_functions(function_of(1));
  EXPECT_EQ(set_triggers(request).code(), Code::kNotFound);
}

TEST_F(CollectorTriggersTest, UntilFunctionEndsDetail) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  api::SetTriggersRequest request;
  api::Trigger& trigger = *request.add_triggers();
  trigger.add_functions(function_of(1));
  trigger.add_functions(function_of(3));
  trigger.add_until_functions(function_of(2));
  trigger.add_detail_functions("0x5");
  ASSERT_TRUE(set_triggers(request).ok());
  EXPECT_THAT(received(), IsEmpty());
  call(agent, 1);
  ASSERT_TRUE(wait_received(1));
  EXPECT_EQ(received()[0].set_detail().mode(), wire::DETAIL_ON);
  EXPECT_THAT(received()[0].set_detail().function_ids(), ElementsAre(5));
  end_call(agent, 1);
  call(agent, 2);
  ASSERT_TRUE(wait_received(2));
  EXPECT_EQ(received()[1].set_detail().mode(), wire::DETAIL_OFF);
  EXPECT_THAT(received()[1].set_detail().function_ids(), IsEmpty());
  EXPECT_THAT(fired(), ElementsAre(1)) << "an end is no firing";
  end_call(agent, 2);
  // What is over may fire again.
  call(agent, 3);
  ASSERT_TRUE(wait_received(3));
  EXPECT_EQ(received()[2].set_detail().mode(), wire::DETAIL_ON);
  EXPECT_THAT(fired(), ElementsAre(2));
  EXPECT_THAT(markers_of(agent, 7), SizeIs(2)) << "an end has no marker";
}

TEST_F(CollectorTriggersTest, PreRollDetailIsArmedAgainAtItsEnd) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  api::SetTriggersRequest request;
  // Behind another one: what ends a trigger's detail is its own.
  request.add_triggers()->add_functions(function_of(9));
  api::Trigger& trigger = *request.add_triggers();
  trigger.add_functions(function_of(1));
  trigger.add_until_functions(function_of(2));
  trigger.add_until_functions(function_of(3));
  trigger.mutable_pre_roll()->set_seconds(2);
  trigger.mutable_duration()->set_seconds(3);
  trigger.add_detail_functions("0x5");
  const auto set = set_triggers(request);
  ASSERT_TRUE(set.ok()) << to_string(set.error());
  EXPECT_EQ(set->functions_matched(), 2u);
  ASSERT_TRUE(wait_received(1));
  call(agent, 1);
  end_call(agent, 1);
  ASSERT_TRUE(wait_received(2));
  EXPECT_EQ(received()[1].set_detail().mode(), wire::DETAIL_ON);
  EXPECT_EQ(received()[1].set_detail().pre_roll_ns(), 2'000'000'000u);
  EXPECT_EQ(received()[1].set_detail().duration_ns(), 3'000'000'000u);
  call(agent, 2);
  ASSERT_TRUE(wait_received(3));
  EXPECT_EQ(received()[2].set_detail().mode(), wire::DETAIL_ARMED);
  EXPECT_EQ(received()[2].set_detail().pre_roll_ns(), 0u);
  EXPECT_THAT(received()[2].set_detail().function_ids(), ElementsAre(5));
  EXPECT_THAT(fired(), ElementsAre(0, 1));
}

TEST_F(CollectorTriggersTest, FunctionThatIsNotThereIsNamed) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  for (const bool is_end : {false, true}) {
    api::SetTriggersRequest request;
    api::Trigger& trigger = *request.add_triggers();
    trigger.add_functions(is_end ? "0x9" : "no_such");
    if (is_end) trigger.add_until_functions("no_such");
    const auto set = set_triggers(request);
    ASSERT_FALSE(set.ok());
    EXPECT_EQ(set.code(), Code::kNotFound);
    EXPECT_EQ(set.error().message,
              "agents/1: no function \"no_such\" in the 0 modules of this agent");
    trigger.set_functions(0, "0xZ");
    EXPECT_EQ(set_triggers(request).code(), Code::kInvalidArgument);
  }
  EXPECT_THAT(fired(), IsEmpty()) << "there are none";
  EXPECT_EQ(triggers_of({})->outcomes_size(), 0);
  EXPECT_FALSE(triggers_of(any("absent")).ok());
}

TEST_F(CollectorTriggersTest, NewTriggersTakeThePlaceOfTheOthers) {
  FakeAgent agent(process(1, "app", 10));
  begin_app(agent);
  api::SetTriggersRequest request;
  request.add_triggers()->add_functions(function_of(1));
  ASSERT_TRUE(set_triggers(request).ok());
  const auto shown_now = triggers_of({});
  ASSERT_TRUE(shown_now.ok());
  ASSERT_EQ(shown_now->outcomes_size(), 1);
  EXPECT_EQ(shown_now->outcomes(0).agent(), "agents/1");
  EXPECT_EQ(shown_now->outcomes(0).session(), collector_->session("")->name());
  EXPECT_EQ(shown_now->outcomes(0).triggers(0).functions(0), function_of(1));
  request.clear_triggers();
  request.add_triggers()->add_functions(function_of(2));
  ASSERT_TRUE(set_triggers(request).ok());
  call(agent, 1);
  end_call(agent, 1);
  call(agent, 2);
  ASSERT_TRUE(wait_received(1));
  EXPECT_THAT(fired(), ElementsAre(1));
  end_call(agent, 2);
  EXPECT_THAT(received(), SizeIs(1));
  request.clear_triggers();
  ASSERT_TRUE(set_triggers(request).ok());
  EXPECT_EQ(triggers_of({})->outcomes_size(), 0);
}

}  // namespace
}  // namespace collect::daemon
