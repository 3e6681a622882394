#include "daemon/control/request_checks.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace collect::control {
namespace {

TEST(RequestChecksTest, NamesAreBoundedText) {
  EXPECT_TRUE(check_name("name", "").ok());
  EXPECT_TRUE(check_name("name", "agents/ü-1").ok());
  EXPECT_TRUE(check_name("name", std::string(kMaxNameBytes, 'x')).ok());
  EXPECT_FALSE(check_name("name", std::string(kMaxNameBytes + 1, 'x')).ok());
  EXPECT_FALSE(check_name("name", "a\nb").ok());
  EXPECT_FALSE(check_name("name", "a\x1f").ok());
  EXPECT_FALSE(check_name("name", "a\x7f").ok());
  EXPECT_TRUE(check_name("name", "a ~").ok());
  EXPECT_FALSE(check_name("name", std::string("a\0b", 3)).ok());
}

TEST(RequestChecksTest, EmptyDetailRequestIsFine) {
  EXPECT_TRUE(detail_command_of(v1::ArmDetailRequest()).ok());
  EXPECT_TRUE(detail_command_of(v1::StartDetailRequest()).ok());
  EXPECT_TRUE(detail_command_of(v1::StopDetailRequest()).ok());
}

TEST(RequestChecksTest, TriggersNameFunctionsAndTimesThatFit) {
  v1::SetTriggersRequest request;
  EXPECT_TRUE(check_triggers(request).ok()) << "none any more";
  v1::Trigger& trigger = *request.add_triggers();
  EXPECT_FALSE(check_triggers(request).ok()) << "no function";
  trigger.add_functions("parse_*");
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.mutable_longer_than()->set_nanos(1);
  EXPECT_FALSE(check_triggers(request).ok()) << "every call, and long ones";
  trigger.set_event(v1::Trigger::EVENT_LONG_CALL);
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.clear_longer_than();
  EXPECT_FALSE(check_triggers(request).ok()) << "longer than what?";
  trigger.set_event(v1::Trigger::EVENT_EXCEPTION);
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.set_event(static_cast<v1::Trigger::Event>(9));
  EXPECT_FALSE(check_triggers(request).ok());
  trigger.set_event(v1::Trigger::EVENT_CALL);
  for (const auto field : {&v1::Trigger::mutable_duration, &v1::Trigger::mutable_pre_roll}) {
    (trigger.*field)()->set_seconds(kMaxDetailSeconds);
    EXPECT_TRUE(check_triggers(request).ok());
    (trigger.*field)()->set_seconds(kMaxDetailSeconds + 1);
    EXPECT_FALSE(check_triggers(request).ok());
    (trigger.*field)()->set_seconds(1);
  }
  trigger.add_detail_functions("");
  EXPECT_FALSE(check_triggers(request).ok());
  trigger.clear_detail_functions();
  trigger.add_until_functions("");
  EXPECT_FALSE(check_triggers(request).ok());
  trigger.set_until_functions(0, "done");
  while (request.triggers_size() < kMaxTriggers) *request.add_triggers() = request.triggers(0);
  EXPECT_TRUE(check_triggers(request).ok());
  *request.add_triggers() = request.triggers(0);
  EXPECT_FALSE(check_triggers(request).ok());
}

TEST(RequestChecksTest, CounterTriggersNameOneCounter) {
  v1::SetTriggersRequest request;
  v1::Trigger& trigger = *request.add_triggers();
  trigger.set_event(v1::Trigger::EVENT_COUNTER);
  EXPECT_FALSE(check_triggers(request).ok());
  trigger.set_counter(std::string(kMaxCounterNameBytes, 'x'));
  trigger.set_above(-5);
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.add_functions("parse_*");
  EXPECT_FALSE(check_triggers(request).ok()) << "a counter, and a function";
  trigger.set_event(v1::Trigger::EVENT_CALL);
  EXPECT_FALSE(check_triggers(request).ok()) << "a function, and a counter";
  trigger.clear_counter();
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.clear_functions();
  trigger.set_event(v1::Trigger::EVENT_COUNTER);
  trigger.set_counter(std::string(kMaxCounterNameBytes + 1, 'x'));
  EXPECT_FALSE(check_triggers(request).ok());
}

TEST(RequestChecksTest, BlockedTriggersHaveABoundAndNothingElse) {
  v1::SetTriggersRequest request;
  v1::Trigger& trigger = *request.add_triggers();
  trigger.set_event(v1::Trigger::EVENT_BLOCKED);
  EXPECT_FALSE(check_triggers(request).ok()) << "longer than what?";
  trigger.mutable_longer_than()->set_nanos(1);
  EXPECT_TRUE(check_triggers(request).ok());
  trigger.set_counter("depth");
  EXPECT_FALSE(check_triggers(request).ok());
  trigger.clear_counter();
  trigger.add_functions("parse_*");
  EXPECT_FALSE(check_triggers(request).ok());
}

TEST(RequestChecksTest, BufferingOfARuleHasLimits) {
  v1::SetRulesRequest request;
  v1::Rule& rule = *request.add_rules();
  rule.set_when_full(v1::Rule::WHEN_FULL_WAIT);
  rule.set_spool_mb(kMaxRuleSpoolMb);
  EXPECT_TRUE(check_rules(request).ok());
  rule.set_spool_mb(kMaxRuleSpoolMb + 1);
  EXPECT_FALSE(check_rules(request).ok());
  rule.set_spool_mb(0);
  rule.set_when_full(static_cast<v1::Rule::WhenFull>(9));
  EXPECT_FALSE(check_rules(request).ok());
}

TEST(RequestChecksTest, DetailLimitsPlusOne) {
  v1::StartDetailRequest request;
  for (int i = 0; i < kMaxDetailFunctions; ++i) request.add_threads("name=w*");
  EXPECT_TRUE(detail_command_of(request).ok());
  request.add_threads("name=w*");
  EXPECT_FALSE(detail_command_of(request).ok());

  request.Clear();
  for (int i = 0; i < kMaxDetailFunctions; ++i) request.add_functions("f*");
  EXPECT_TRUE(detail_command_of(request).ok());
  request.add_functions("f*");
  EXPECT_FALSE(detail_command_of(request).ok());

  request.Clear();
  request.add_functions(std::string(kMaxFunctionPatternBytes, 'f'));
  EXPECT_TRUE(detail_command_of(request).ok());
  request.set_functions(0, std::string(kMaxFunctionPatternBytes + 1, 'f'));
  EXPECT_FALSE(detail_command_of(request).ok());
  request.set_functions(0, "");
  EXPECT_FALSE(detail_command_of(request).ok());
}

TEST(RequestChecksTest, EachPartOfADetailRequestIsLookedAt) {
  const auto said = [](auto change) {
    v1::StartDetailRequest request;
    change(request);
    const auto checked = detail_command_of(request);
    return checked.ok() ? std::string() : checked.error().message;
  };
  EXPECT_NE(said([](auto& request) { request.mutable_target()->set_tag("\n"); }).find("target.tag"),
            std::string::npos);
  EXPECT_NE(said([](auto& request) { request.add_threads(""); }).find("threads"),
            std::string::npos);
  EXPECT_NE(said([](auto& request) { request.add_functions("f\n"); }).find("functions"),
            std::string::npos);
  EXPECT_NE(
      said([](auto& request) { request.mutable_pre_roll()->set_seconds(-1); }).find("pre_roll"),
      std::string::npos);
}

TEST(RequestChecksTest, EveryWordOfASelectorIsLookedAt) {
  const auto refused = [](auto set, const char* field) {
    v1::Selector selector;
    set(selector, std::string(kMaxNameBytes, 'x'));
    EXPECT_TRUE(check_selector(selector).ok()) << field;
    set(selector, std::string(kMaxNameBytes + 1, 'x'));
    const Status checked = check_selector(selector);
    ASSERT_FALSE(checked.ok()) << field;
    EXPECT_NE(checked.error().message.find(field), std::string::npos);
  };
  refused([](auto& to, const auto& word) { to.set_agent(word); }, "target.agent");
  refused([](auto& to, const auto& word) { to.set_session(word); }, "target.session");
  refused([](auto& to, const auto& word) { to.set_device(word); }, "target.device");
  refused([](auto& to, const auto& word) { to.set_process_name(word); }, "target.process_name");
  refused([](auto& to, const auto& word) { to.set_tag(word); }, "target.tag");
  refused([](auto& to, const auto& word) { to.set_any(word); }, "target.any");
}

// Of StartSession and of rules alike.
TEST(RequestChecksTest, ChecksRecordingOptionsOfStartsAndRules) {
  const auto refused = [](auto change, const char* field) {
    v1::StartSessionRequest start;
    change(start);
    const Status checked = check_start(start);
    ASSERT_FALSE(checked.ok()) << field;
    EXPECT_NE(checked.error().message.find(field), std::string::npos) << checked.error().message;
    v1::SetRulesRequest rules;
    change(*rules.add_rules());
    EXPECT_FALSE(check_rules(rules).ok()) << field;
  };
  refused([](auto& request) { request.mutable_target()->set_device("\n"); }, "target.device");
  refused([](auto& request) { request.mutable_functions()->add_only(""); }, "functions.only");
  refused([](auto& request) { request.mutable_functions()->add_except(""); }, "functions.except");
  refused([](auto& request) { request.mutable_detail()->add_functions(""); }, "detail.functions");
  refused([](auto& request) { request.mutable_detail()->mutable_duration()->set_seconds(-1); },
          "detail.duration");
  refused([](auto& request) { request.mutable_duration()->set_nanos(-1); }, "duration");
}

TEST(RequestChecksTest, RulesAreNotAboutWhatIsHereAlready) {
  v1::SetRulesRequest request;
  v1::Selector& target = *request.add_rules()->mutable_target();
  target.set_device("R58M");
  target.set_process_name("lua");
  target.set_tag("night");
  EXPECT_TRUE(check_rules(request).ok());
  for (const auto& set : std::vector<std::function<void()>>{
           [&] { target.set_agent("agents/1"); }, [&] { target.set_session("s"); },
           [&] { target.set_pid(1); }, [&] { target.set_any("lua"); }}) {
    target.Clear();
    set();
    EXPECT_FALSE(check_rules(request).ok()) << target.ShortDebugString();
  }
  request.Clear();
  for (int i = 0; i < kMaxRules; ++i) request.add_rules();
  EXPECT_TRUE(check_rules(request).ok());
  request.add_rules();
  EXPECT_FALSE(check_rules(request).ok());
}

TEST(RequestChecksTest, FunctionFiltersHaveTheSameLimits) {
  EXPECT_TRUE(check_function_filter({}).ok());
  v1::SetFunctionFilterRequest request;
  request.mutable_target()->set_any("\n");
  EXPECT_FALSE(check_function_filter(request).ok());
  request.Clear();
  for (int i = 0; i < kMaxDetailFunctions; ++i) {
    request.add_only("f*");
    request.add_except("g*");
  }
  EXPECT_TRUE(check_function_filter(request).ok());
  v1::SetFunctionFilterRequest more = request;
  more.add_only("f*");
  EXPECT_FALSE(check_function_filter(more).ok());
  request.add_except("g*");
  EXPECT_FALSE(check_function_filter(request).ok());
}

TEST(RequestChecksTest, MarkersSaySomethingAndNotTooMuch) {
  v1::AnnotateRequest request;
  EXPECT_FALSE(check_annotation(request).ok());
  request.set_text(std::string(kMaxAnnotationBytes, 'x'));
  EXPECT_TRUE(check_annotation(request).ok());
  request.mutable_target()->set_any("\n");
  EXPECT_FALSE(check_annotation(request).ok());
  request.clear_target();
  request.mutable_text()->push_back('x');
  EXPECT_FALSE(check_annotation(request).ok());
}

TEST(RequestChecksTest, DurationsAreNotNegative) {
  v1::StartDetailRequest request;
  request.mutable_duration()->set_seconds(kMaxDetailSeconds);
  request.mutable_pre_roll()->set_nanos(999'999'999);
  EXPECT_TRUE(detail_command_of(request).ok());
  request.mutable_pre_roll()->set_nanos(1'000'000'000);
  EXPECT_FALSE(detail_command_of(request).ok());
  request.mutable_pre_roll()->set_nanos(-1);
  EXPECT_FALSE(detail_command_of(request).ok());
  request.clear_pre_roll();
  request.mutable_duration()->set_seconds(-1);
  EXPECT_FALSE(detail_command_of(request).ok());
  request.mutable_duration()->set_seconds(kMaxDetailSeconds + 1);
  EXPECT_FALSE(detail_command_of(request).ok());
}

TEST(RequestChecksTest, WatchIntervalsAreClamped) {
  v1::WatchSessionRequest request;
  EXPECT_EQ(*watch_interval_ms(request), kDefaultWatchIntervalMs);
  request.mutable_interval()->set_nanos(1);
  EXPECT_EQ(*watch_interval_ms(request), kMinWatchIntervalMs);
  request.mutable_interval()->set_nanos(250'000'000);
  EXPECT_EQ(*watch_interval_ms(request), 250u);
  request.mutable_interval()->set_nanos(999'999'999);
  EXPECT_EQ(*watch_interval_ms(request), 999u);
  request.mutable_interval()->set_seconds(2);
  EXPECT_EQ(*watch_interval_ms(request), 2'999u);
  request.mutable_interval()->set_nanos(1'000'000'000);
  EXPECT_FALSE(watch_interval_ms(request).ok());
  request.mutable_interval()->set_nanos(-1);
  EXPECT_FALSE(watch_interval_ms(request).ok());
  request.mutable_interval()->set_nanos(0);
  request.mutable_interval()->set_seconds(INT64_MAX);
  EXPECT_EQ(*watch_interval_ms(request), kMaxWatchIntervalMs);
  request.mutable_interval()->set_seconds(-1);
  EXPECT_FALSE(watch_interval_ms(request).ok());
}

TEST(RequestChecksTest, WatchesOfCallsHaveDefaultsAndLimits) {
  v1::WatchCallsRequest request;
  EXPECT_EQ(checked_calls(request)->interval().seconds(), 1);
  EXPECT_EQ(checked_calls(request)->max_calls(), kDefaultMaxCalls);
  EXPECT_FALSE(checked_calls(request)->has_duration());
  request.mutable_interval()->set_nanos(1);
  request.set_max_calls(kMostMaxCalls + 1);
  EXPECT_EQ(checked_calls(request)->interval().nanos(), 100'000'000);
  EXPECT_EQ(checked_calls(request)->max_calls(), kMostMaxCalls);
  request.mutable_interval()->set_seconds(INT64_MAX);
  EXPECT_EQ(checked_calls(request)->interval().seconds(), 60);
  request.mutable_interval()->set_seconds(-1);
  EXPECT_FALSE(checked_calls(request).ok());
  request.clear_interval();
  request.mutable_least_duration()->set_nanos(-1);
  EXPECT_FALSE(checked_calls(request).ok());
  request.mutable_least_duration()->set_nanos(1);
  EXPECT_TRUE(checked_calls(request).ok());
  request.add_functions("");
  EXPECT_FALSE(checked_calls(request).ok());
  request.set_functions(0, "f*");
  request.add_threads(std::string(kMaxFunctionPatternBytes + 1, 'x'));
  EXPECT_FALSE(checked_calls(request).ok());
  request.clear_threads();
  request.set_name("a\n");
  EXPECT_FALSE(checked_calls(request).ok());
}

}  // namespace
}  // namespace collect::control
