// A day's work with the control plane, by clients that are not ours: grpcurl or buf alone, and the
// Python example.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/grpc_tool.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr seconds kPatience{30};

class Day : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!tool_.is_there()) {
      GTEST_SKIP() << GetParam() << " names no program (deploy/test.sh sets it)";
    }
  }
  // The answer as JSON; the last message of a stream.
  json ask(const std::string& method, const std::string& request = "{}") {
    const Ending ending = tool_.call(collector_, scratch_, method, request);
    EXPECT_TRUE(ending.exited_with(0)) << method << ": " << ending.errors;
    return messages_of(ending.output).empty() ? json() : messages_of(ending.output).back();
  }
  std::string refused(const std::string& method, const std::string& request) {
    const Ending ending = tool_.call(collector_, scratch_, method, request);
    EXPECT_FALSE(ending.exited_with(0)) << method << ": " << ending.output;
    return ending.errors;
  }
  static std::vector<json> messages_of(const std::string& text) {
    std::vector<json> messages;
    size_t begin = 0;
    int depth = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      if (text[at] == '{' && depth++ == 0) begin = at;
      if (text[at] == '}' && --depth == 0) {
        messages.push_back(json::parse(text.substr(begin, at + 1 - begin), nullptr, false));
      }
    }
    return messages;
  }
  // Until the only agent is in the state; then the agent.
  json agent_in(const std::string& state) {
    json agents;
    EXPECT_TRUE(eventually(kPatience, [&] {
      agents = ask("ListAgents",
                   R"({"target": {"process_name": "stead*"}, "states": [")" + state + "\"]}");
      return agents.contains("agents");
    })) << ask("ListAgents");
    return agents.contains("agents") ? agents["agents"][0] : json();
  }

  const GrpcTool tool_{GetParam()};
  Scratch scratch_;
  CollectorProcess collector_{scratch_};
};

TEST_P(Day, FromTheRuleToTheDeletedSession) {
  EXPECT_FALSE(ask("ListDevices").contains("devices"));
  EXPECT_THAT(refused("GetDevice", "{}"), HasSubstr("there is no device"));
  EXPECT_THAT(refused("StartDetail", "{}"), HasSubstr("no agent is connected"));

  // What comes is to record by itself, but for what is called main.
  ask("SetRules", R"({"rules": [{"target": {"tag": "day"}, "functions": {"except": ["main"]},
                      "detail": {"mode": "DETAIL_MODE_ARMED"}, "when_full": "WHEN_FULL_WAIT",
                      "spool_mb": 0}, {"action": "ACTION_IDLE"}]})");
  EXPECT_EQ(ask("GetRules")["rules"].size(), 2u);
  Environment environment = collector_.tracing();
  environment["COLLECT_START"] = "idle";
  environment["COLLECT_TAG"] = "day";
  ChildProcess program(scratch_.path(), {traced_program("steady"), "pace", "600000"}, environment);
  const json agent = agent_in("AGENT_STATE_RECORDING");
  const std::string session = agent.value("session", "");
  EXPECT_EQ(ask("GetAgent", R"({"name": ")" + agent.value("name", "") + "\"}")["pid"],
            program.pid());
  ASSERT_TRUE(eventually(kPatience, [&] {
    return ask("GetAgent").value("detail", "") == "DETAIL_MODE_ARMED" &&
           std::stoull(ask("GetSession").value("events", "0")) > 100;
  })) << ask("GetSession");

  // What there is so far, whole, while more comes.
  const json snapshot = ask("SnapshotSession");
  EXPECT_THAT(snapshot.value("name", ""), HasSubstr("_snap1/pid_"));
  EXPECT_EQ(snapshot.value("state", ""), "SESSION_STATE_COMPLETE") << snapshot;
  EXPECT_TRUE(snapshot.value("lossesKnown", false)) << snapshot;
  EXPECT_GT(std::stoull(snapshot.value("events", "0")), 100u);
  EXPECT_EQ(ask("GetSession")["name"], session) << "the newest is the one that records";
  const Ending copied = collector_.ctl({"verify", snapshot.value("path", "")});
  EXPECT_TRUE(copied.exited_with(0)) << copied.output << copied.errors;
  ask("DeleteSession", R"({"name": ")" + snapshot.value("name", "") + "\"}");

  // A program that is called all the time: what it does then, and has just done.
  const json set = ask("SetTriggers", R"({"triggers": [{"functions": ["step"],
      "detail_functions": ["step"], "duration": "0.1s", "pre_roll": "60s", "times": 2},
      {"functions": ["step"], "event": "EVENT_LONG_CALL", "longer_than": "3600s"},
      {"functions": ["step"], "event": "EVENT_EXCEPTION"}]})")["outcomes"][0];
  EXPECT_GE(set.value("functionsMatched", 0), 3) << set;
  EXPECT_THAT(refused("SetTriggers", R"({"triggers": [{}]})"), HasSubstr("functions is empty"));
  EXPECT_THAT(refused("SetTriggers", R"({"triggers": [{"functions": ["no_such"]}]})"),
              HasSubstr("no_such"));
  ASSERT_TRUE(eventually(kPatience, [&] {
    return ask("GetTriggers")["outcomes"][0]["triggers"][0].value("firedCount", 0) == 2;
  })) << ask("GetTriggers");
  const json triggers = ask("GetTriggers")["outcomes"][0]["triggers"];
  EXPECT_FALSE(triggers[1].contains("firedCount")) << triggers;
  EXPECT_FALSE(triggers[2].contains("firedCount")) << triggers;
  ASSERT_TRUE(eventually(kPatience, [&] {
    return std::stoull(ask("GetSession").value("detailRecords", "0")) > 0 &&
           ask("GetAgent").value("detail", "") == "DETAIL_MODE_ARMED";
  })) << ask("GetSession");
  ask("SetTriggers");
  EXPECT_FALSE(ask("GetTriggers").contains("outcomes"));

  // A counter of the program: of what it has now, one that it is about to pass.
  ASSERT_TRUE(eventually(kPatience, [&] { return ask("GetAgent").contains("counters"); }));
  const json counter = ask("GetAgent")["counters"][0];
  EXPECT_EQ(counter["name"], "steps");
  // What is shown is as old as the last heartbeat; one step takes a millisecond.
  const uint64_t soon = std::stoull(counter.value("value", "0")) + 10'000;
  ask("SetTriggers", R"({"triggers": [{"event": "EVENT_COUNTER", "counter": "steps",
      "duration": "0.1s", "above": ")" +
                         std::to_string(soon) + "\"}]}");
  ASSERT_TRUE(eventually(kPatience, [&] {
    return ask("GetTriggers")["outcomes"][0]["triggers"][0].value("firedCount", 0) == 1;
  })) << ask("GetTriggers");
  ask("SetTriggers");

  // Detail of what has just been, and of what comes.
  const json on =
      ask("StartDetail", R"({"functions": ["step"], "pre_roll": "60s"})")["outcomes"][0];
  EXPECT_FALSE(on.contains("error")) << on;
  EXPECT_GT(std::stoull(on.value("preRollRecords", "0")), 0u) << on;
  EXPECT_GT(std::stoull(on.value("preRollStartTimeNs", "0")), 0u) << on;
  EXPECT_THAT(on["warnings"][0].get<std::string>(), HasSubstr("of the 60 s")) << on;
  EXPECT_EQ(ask("StopDetail")["outcomes"].size(), 1u);
  EXPECT_THAT(refused("StartDetail", R"({"threads": ["1"]})"), HasSubstr("no thread is"));
  EXPECT_THAT(refused("StopDetail", R"({"target": {"pid": 1}})"), HasSubstr("no agent has pid 1"));

  EXPECT_GE(ask("SetFunctionFilter", R"({"only": ["step"]})")["outcomes"][0]["functionsMatched"],
            1);
  EXPECT_GT(
      std::stoull(ask("Annotate", R"({"text": "door opens"})")["outcomes"][0].value("timeNs", "0")),
      0u);
  EXPECT_THAT(ask("RollContainer")["outcomes"][0].value("path", ""), HasSubstr("capture-"));

  const json stopped =
      ask("StopSession", R"({"target": {"tag": "day"}})")["outcomes"][0]["session"];
  EXPECT_EQ(stopped.value("name", ""), session);
  EXPECT_EQ(stopped.value("state", ""), "SESSION_STATE_COMPLETE") << stopped;
  EXPECT_EQ(ask("WatchSession")["name"], session) << "ends with the sealed one";

  // A minute of it again, but without the rule.
  ask("SetRules", "{}");
  const json again = ask("StartSession", R"({"target": {"process_name": "steady"},
      "functions": {"only": ["step"]}, "duration": "0.2s"})")["outcomes"][0]["session"];
  EXPECT_NE(again.value("name", ""), session);
  ASSERT_TRUE(eventually(
      kPatience, [&] { return ask("GetSession").value("state", "") == "SESSION_STATE_COMPLETE"; }));

  const std::string name = R"({"name": ")" + session + "\"";
  EXPECT_EQ(ask("GetManifest", name + "}").value("state", ""), "complete");
  const json files = ask("ListFiles", name + "}")["files"];
  EXPECT_GE(files.size(), 3u);
  const json end = ask("DownloadFile", name + R"(, "path": "manifest.json"})")["end"];
  EXPECT_EQ(end.value("fileSizeBytes", ""), end.value("sizeBytes", "-"));

  const std::vector<RecordedSession> recorded = sealed_sessions(collector_.root(), program.pid());
  ASSERT_EQ(recorded.size(), 2u);
  for (const RecordedSession& one : recorded) {
    const json manifest = one.manifest();
    for (const json& symbol : manifest["symbols"]) {
      EXPECT_NE(symbol.value("name", ""), "main") << "neither the rule nor the filter has it";
    }
    const Ending verified = collector_.ctl({"verify", one.directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  ask("DeleteSession", name + "}");
  EXPECT_THAT(refused("GetSession", name + "}"), HasSubstr("no session"));
  ask("DetachAgent", R"({"name": "steady"})");
  EXPECT_GT(std::stoull(ask("GetStats").value("eventsStored", "0")), 100u);
}

INSTANTIATE_TEST_SUITE_P(Tools, Day, testing::Values("COLLECT_BUF", "COLLECT_GRPCURL"),
                         [](const auto& test) { return std::string(test.param).substr(8); });

// deploy/python: stubs by protoc, and a client on them.
TEST(PythonTest, TheExampleRecordsAndSaves) {
  const std::string python = "/usr/bin/python3";  // Debian's, for which its packages are
  Scratch scratch;
  if (!run(scratch.path(), {python, "-c", "import grpc, google.protobuf"}).exited_with(0)) {
    GTEST_SKIP() << "there is no python3-grpcio";
  }
  const Ending made =
      run(scratch.path(), {deploy_script("python/make-stubs.sh"), scratch / "stubs"});
  ASSERT_TRUE(made.exited_with(0)) << made.errors;
  CollectorProcess collector(scratch);
  const auto record = [&](const std::string& process) {
    return run(scratch.path(),
               {python, deploy_script("python/record.py"), "--control", collector.control(),
                "--process", process, "--seconds", "1", scratch / "saved"},
               {{"PYTHONPATH", scratch / "stubs"}, {"PYTHONDONTWRITEBYTECODE", "1"}});
  };
  const Ending nobody = record("nobody");
  EXPECT_TRUE(nobody.exited_with(1));
  EXPECT_THAT(nobody.errors, HasSubstr("no agent has process_name \"nobody\""));
  EXPECT_THAT(nobody.errors, HasSubstr("(NOT_FOUND)"));

  Environment environment = collector.tracing();
  environment["COLLECT_START"] = "idle";
  ChildProcess program(scratch.path(), {traced_program("steady"), "pace", "600000"}, environment);
  ASSERT_TRUE(eventually(kPatience, [&] {
    return collector.ctl({"agents", "steady"}).output.find("idle") != std::string::npos;
  }));
  const Ending recorded = record("stead?");
  ASSERT_TRUE(recorded.exited_with(0)) << recorded.errors;
  EXPECT_THAT(recorded.output, HasSubstr(": complete, "));
  EXPECT_THAT(recorded.output, HasSubstr(" events, 0 lost"));
  // What was saved is what is there.
  const std::vector<RecordedSession> sessions = sealed_sessions(collector.root(), program.pid());
  ASSERT_EQ(sessions.size(), 1u);
  const std::filesystem::path saved =
      std::filesystem::path(scratch / "saved") /
      std::filesystem::relative(sessions[0].directory(), collector.root());
  const Ending same = run(scratch.path(), {"diff", "-r", saved.string(), sessions[0].directory()});
  EXPECT_TRUE(same.exited_with(0)) << same.output << same.errors;
}

}  // namespace
}  // namespace collect::e2e
