// Messages of the control plane as JSON and back: names, numbers, words and times, what is left
// out, and what a file with rules may not say.
#include "daemon/ctl/control/messages/message_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collect/control/v1/control.pb.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
using ::testing::HasSubstr;

TEST(MessageJson, NamesAreSnakeCaseAndNumbersAreNumbers) {
  api::Session session;
  session.set_name("sessions/s/pid_7");
  session.set_state(api::SESSION_STATE_ACTIVE);
  session.set_process_name("app");
  session.set_events((uint64_t{1} << 53) + 1);
  session.set_detail(api::DETAIL_MODE_ARMED);
  const Json shown = json_of(session);
  EXPECT_EQ(shown["name"], "sessions/s/pid_7");
  EXPECT_EQ(shown["state"], "recording");
  EXPECT_EQ(shown["process_name"], "app");
  EXPECT_EQ(shown["events"].dump(), "9007199254740993");
  EXPECT_EQ(shown["lost_events"], 0) << "numbers are always there";
  EXPECT_EQ(shown["losses_known"], false);
  EXPECT_EQ(shown["detail"], "armed");
  for (const char* absent : {"status", "start_time", "process_end", "symbols", "start_filter"}) {
    EXPECT_FALSE(shown.contains(absent)) << absent;
  }
}

TEST(MessageJson, EnumsAreTheWordsOfTheTables) {
  const auto word = [](const google::protobuf::EnumDescriptor* type, int number) {
    return enum_word(*type->FindValueByNumber(number));
  };
  EXPECT_EQ(word(api::AgentState_descriptor(), api::AGENT_STATE_CONNECTED), "idle");
  EXPECT_EQ(word(api::AgentState_descriptor(), api::AGENT_STATE_DIALING), "dialling");
  EXPECT_EQ(word(api::DeviceState_descriptor(), api::DEVICE_STATE_NO_AGENT), "no_agent");
  EXPECT_EQ(word(api::Trigger::Event_descriptor(), api::Trigger::EVENT_LONG_CALL), "long_call");
  EXPECT_EQ(word(api::Rule::WhenFull_descriptor(), api::Rule::WHEN_FULL_DROP), "drop");
}

TEST(MessageJson, TimesAreOfTheCalendarAndDurationsAreSeconds) {
  api::Session session;
  session.mutable_start_time()->set_seconds(1'764'079'385);
  session.mutable_start_time()->set_nanos(250'000'000);
  session.mutable_end_time()->set_seconds(INT64_MAX);
  const Json shown = json_of(session);
  EXPECT_EQ(shown["start_time"], "2025-11-25T14:03:05.250Z");
  EXPECT_FALSE(shown.contains("end_time")) << "no calendar has it";
  api::Trigger trigger;
  trigger.mutable_longer_than()->set_nanos(5'000'000);
  trigger.mutable_duration()->set_seconds(2);
  EXPECT_EQ(json_of(trigger)["longer_than_s"], 0.005);
  EXPECT_EQ(json_of(trigger)["duration_s"], 2);
}

TEST(MessageJson, ErrorsHaveACodeInOneWord) {
  api::StartSessionResponse response;
  api::RecordingOutcome& outcome = *response.add_outcomes();
  outcome.set_agent("agents/1");
  outcome.mutable_error()->set_code(9);  // FAILED_PRECONDITION
  outcome.mutable_error()->set_message("it records already");
  EXPECT_EQ(json_of(response).dump(),
            R"({"outcomes":[{"agent":"agents/1","error":{"code":"unsupported",)"
            R"("message":"it records already"}}]})");
  EXPECT_EQ(
      error_line({Code::kIo, "a\x1b\xff"}),
      "{\"version\":1,\"error\":{\"code\":\"io_error\",\"message\":\"a\\u001b\xEF\xBF\xBD\"}}\n");
}

TEST(MessageJson, LineBeginsWithTheVersionOfTheDialect) {
  api::Stats stats;
  stats.set_version("0.1.0");
  const std::string line = message_line(stats);
  EXPECT_THAT(line, ::testing::StartsWith("{\"version\":1,\"collector_version\":\"0.1.0\","));
  EXPECT_THAT(line, ::testing::EndsWith("}\n"));
  EXPECT_TRUE(line.starts_with(kJsonLineStart));
}

TEST(MessageJson, PagesOfListsAreNotSeen) {
  api::ListSessionsResponse response;
  response.set_next_page_token("more");
  EXPECT_EQ(json_of(response).dump(), R"({"sessions":[]})");
}

// ---- reading

api::SetRulesRequest rules_of(const std::string& text) {
  api::SetRulesRequest rules;
  const Status read = from_json(text, rules);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return rules;
}

TEST(MessageJson, ReadsTheRulesItPrints) {
  api::SetRulesRequest rules;
  api::Rule& rule = *rules.add_rules();
  rule.mutable_target()->set_process_name("render*");
  rule.mutable_target()->set_pid(7);
  rule.set_action(api::Rule::ACTION_RECORD);
  rule.mutable_functions()->add_only("a*");
  rule.mutable_functions()->add_only("b");
  rule.mutable_detail()->set_mode(api::DETAIL_MODE_ON);
  rule.mutable_duration()->set_seconds(60);
  rule.mutable_duration()->set_nanos(1);
  rule.set_when_full(api::Rule::WHEN_FULL_OVERWRITE);
  rule.set_spool_mb(0);  // is not the same as absent
  rules.add_rules()->set_action(api::Rule::ACTION_IDLE);
  EXPECT_EQ(rules_of(message_line(rules)).DebugString(), rules.DebugString());
  EXPECT_EQ(rules_of("{}").rules_size(), 0);
  EXPECT_EQ(rules_of(R"({"rules":[{"duration_s":0.9999999999}]})").rules(0).duration().seconds(),
            1);
}

TEST(MessageJson, ReportsInvalidValuesWithTheirPlace) {
  const auto wrong = [](const std::string& text) {
    api::SetRulesRequest rules;
    const Status read = from_json(text, rules);
    EXPECT_EQ(read.code(), Code::kInvalidArgument) << text;
    return read.ok() ? "" : read.error().message;
  };
  EXPECT_EQ(wrong("{\"rules\":"), "not JSON, at byte 10");
  EXPECT_EQ(wrong("[]"), "an object {…} is wanted");
  EXPECT_EQ(wrong(R"({"version":2})"), "version 2 is not known, only 1");
  EXPECT_EQ(wrong(R"({"rules":{}})"), "rules: a list […] is wanted");
  EXPECT_EQ(wrong(R"({"rules":[7]})"), "rules[0]: an object {…} is wanted");
  EXPECT_EQ(wrong(R"({"rules":[{},{"acton":"idle"}]})"),
            "rules[1]: there is no \"acton\"; did you mean action?");
  EXPECT_EQ(wrong(R"({"rules":[{"action":"ACTION_IDLE"}]})"),
            "rules[0].action: \"ACTION_IDLE\" is not one of its words; there is record, idle");
  EXPECT_EQ(wrong(R"({"rules":[{"action":1}]})"),
            "rules[0].action: \"1\" is not one of its words; there is record, idle");
  EXPECT_EQ(wrong(R"({"rules":[{"target":{"pid":"7"}}]})"),
            "rules[0].target.pid: a whole number from 0 to 4294967295 is wanted");
  EXPECT_EQ(wrong(R"({"rules":[{"target":{"pid":4294967296}}]})"),
            "rules[0].target.pid: a whole number from 0 to 4294967295 is wanted");
  EXPECT_EQ(wrong(R"({"rules":[{"target":{"pid":-1}}]})"),
            "rules[0].target.pid: a whole number from 0 to 4294967295 is wanted");
  EXPECT_EQ(wrong(R"({"rules":[{"target":{"tag":null}}]})"),
            "rules[0].target.tag: a text \"…\" is wanted");
  for (const char* seconds : {"\"60s\"", "-1", "1e300", "null"}) {
    EXPECT_EQ(wrong(R"({"rules":[{"duration_s":)" + std::string(seconds) + "}]}"),
              "rules[0].duration_s: seconds are wanted, such as 60 or 0.25");
  }
  EXPECT_THAT(wrong(R"({"rules":[{"functions":{"only":[1]}}]})"), HasSubstr("functions.only[0]: "));
}

}  // namespace
}  // namespace collect::ctl
