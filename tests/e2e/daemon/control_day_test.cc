// A day's work with the control plane, by clients that are not ours: grpcurl or buf alone, and the
// Python example.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/grpc_tool.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using testing::HasSubstr;

constexpr seconds kPatience{30};

uint64_t number(const json& of, const std::string& key) {
  const json value = of.value(key, json("0"));
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<uint64_t>();
}

// A request for this session.
json request_for(const RecordedSession& recorded) {
  const std::filesystem::path directory = recorded.directory();
  return json{{"name", directory.parent_path().filename() / directory.filename()}};
}

struct FilesOnDisk {
  uint64_t records = 0;
  uint64_t containers = 0;
  uint64_t bytes = 0;                     // of all files
  std::map<std::string, uint64_t> sizes;  // by path
};

FilesOnDisk files_on_disk(const std::string& directory) {
  FilesOnDisk files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    files.sizes[std::filesystem::relative(entry.path(), directory).string()] = entry.file_size();
    files.bytes += entry.file_size();
    if (entry.path().extension() == ".rtc") files.containers += entry.file_size();
    if (entry.path().extension() == ".atf") files.records += entry.file_size();
  }
  return files;
}

// The manifest's own words about itself.
void expect_consistent(const RecordedSession& recorded) {
  const json& manifest = recorded.manifest();
  const json& thread = manifest["threads"][0];
  uint64_t first_ns = UINT64_MAX, last_ns = 0;
  recorded.for_each_event(0, [&](const RecordedSession::StoredEvent& event) {
    first_ns = std::min(first_ns, event.timestamp_ns);
    last_ns = std::max(last_ns, event.timestamp_ns);
  });
  EXPECT_EQ(manifest["time_start_ns"], first_ns);
  EXPECT_EQ(manifest["time_end_ns"], last_ns);
  EXPECT_EQ(thread["time_start_ns"], first_ns);
  EXPECT_EQ(thread["time_end_ns"], last_ns);
  EXPECT_EQ(manifest["clock_type"], 3) << "boottime";
  std::map<std::string, uint64_t> numbered;  // of what was lost
  for (const json& gap : manifest["gaps"]) {
    numbered[gap["lane"]] += gap["numbered_lost"].get<uint64_t>();
  }
  EXPECT_EQ(thread["index_next"], thread["events"].get<uint64_t>() + numbered["index"]);
  EXPECT_EQ(thread["detail_next"], thread["detail_records"].get<uint64_t>() + numbered["detail"]);
  EXPECT_LE(manifest["process"]["start_unix_ns"], manifest["finished_unix_ns"]);
  EXPECT_LE(manifest["created_unix_ns"], manifest["finished_unix_ns"]);
  for (const json& symbol : manifest["symbols"]) {
    const uint64_t id = std::stoull(symbol["function_id"].get<std::string>(), nullptr, 16);
    EXPECT_EQ(symbol["symbol_index"], id & UINT32_MAX);
  }
  EXPECT_TRUE(std::any_of(manifest["modules"].begin(), manifest["modules"].end(),
                          [](const json& module) { return module.contains("base_address"); }));
}

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

  // The steps of FromTheRuleToTheDeletedSession, in their order.
  void expect_snapshot(const std::string& session);
  void expect_calls(const std::string& session);
  void expect_triggers_fire();
  void expect_counter_fires();
  void expect_detail();
  void expect_recorded(const std::vector<RecordedSession>& recorded, const json& device_id);

  // The steps of ControlPlaneShowsTheTrueState.
  std::vector<json> list_all(const std::string& method, const std::string& list);
  void record_lossy(const json& before, pid_t& pid);
  void send_noise();
  void expect_shown(const RecordedSession& recorded, const json& before);
  void expect_manifest(const RecordedSession& recorded);
  void expect_files_until_deleted(const RecordedSession& recorded, const FilesOnDisk& files);

  const GrpcTool tool_{GetParam()};
  Scratch scratch_;
  CollectorProcess collector_{scratch_};
};

// What there is so far, whole, while more comes.
void Day::expect_snapshot(const std::string& session) {
  const json snapshot = ask("SnapshotSession");
  EXPECT_THAT(snapshot.value("name", ""), HasSubstr("_snap1/pid_"));
  EXPECT_EQ(snapshot.value("state", ""), "SESSION_STATE_COMPLETE") << snapshot;
  EXPECT_TRUE(snapshot.value("lossesKnown", false)) << snapshot;
  EXPECT_GT(std::stoull(snapshot.value("events", "0")), 100u);
  EXPECT_EQ(ask("GetSession")["name"], session) << "the newest is the one that records";
  const Ending copied = collector_.ctl({"verify", snapshot.value("path", "")});
  EXPECT_TRUE(copied.exited_with(0)) << copied.output << copied.errors;
  ask("DeleteSession", R"({"name": ")" + snapshot.value("name", "") + "\"}");
}

// What it does right now, in one message.
void Day::expect_calls(const std::string& session) {
  const json calls = ask("WatchCalls", R"({"functions": ["step"], "threads": ["name=steady"],
      "least_duration": "0.000000001s", "interval": "60s", "duration": "0.8s", "max_calls": 5})");
  EXPECT_EQ(calls["session"], session);
  EXPECT_EQ(calls["calls"].size(), 5u) << calls;
  EXPECT_EQ(calls["calls"][0]["function"], "step") << calls;
  EXPECT_GT(std::stoull(calls.value("skippedCalls", "0")), 5u) << calls;
  const json none = ask("WatchCalls", R"({"least_duration": "100s", "duration": "0.5s"})");
  EXPECT_FALSE(none.contains("calls")) << none;
}

// A program that is called all the time: what it does then, and has just done.
void Day::expect_triggers_fire() {
  const json set = ask("SetTriggers", R"({"triggers": [{"functions": ["step"],
      "detail_functions": ["step"], "until_functions": ["main"], "duration": "0.1s", "pre_roll": "60s", "times": 2},
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
  EXPECT_EQ(triggers[0]["untilFunctions"], json::array({"main"}));
  EXPECT_FALSE(triggers[1].contains("firedCount")) << triggers;
  EXPECT_FALSE(triggers[2].contains("firedCount")) << triggers;
  ASSERT_TRUE(eventually(kPatience, [&] {
    return std::stoull(ask("GetSession").value("detailRecords", "0")) > 0 &&
           ask("GetAgent").value("detail", "") == "DETAIL_MODE_ARMED";
  })) << ask("GetSession");
  ask("SetTriggers");
  EXPECT_FALSE(ask("GetTriggers").contains("outcomes"));
}

// A counter of the program: of what it has now, one that it is about to pass.
void Day::expect_counter_fires() {
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
}

// Detail of what has just been, and of what comes.
void Day::expect_detail() {
  const json on =
      ask("StartDetail", R"({"functions": ["step"], "pre_roll": "60s"})")["outcomes"][0];
  EXPECT_FALSE(on.contains("error")) << on;
  EXPECT_GT(std::stoull(on.value("preRollRecords", "0")), 0u) << on;
  EXPECT_GT(std::stoull(on.value("preRollStartTimeNs", "0")), 0u) << on;
  EXPECT_THAT(on["warnings"][0].get<std::string>(), HasSubstr("of the 60 s")) << on;
  EXPECT_EQ(ask("StopDetail")["outcomes"].size(), 1u);
  const json threads = ask("ListThreads")["threads"];
  EXPECT_TRUE(std::any_of(threads.begin(), threads.end(), [](const json& thread) {
    return thread.value("name", "") == "steady";
  })) << threads;
  const json of_thread = ask("StartDetail", R"({"threads": ["name=steady"]})")["outcomes"][0];
  EXPECT_EQ(of_thread.value("threadsMatched", 0), 1) << of_thread;
  ask("StopDetail");
  EXPECT_THAT(refused("StartDetail", R"({"threads": ["1"]})"), HasSubstr("no thread is"));
  EXPECT_THAT(refused("StopDetail", R"({"target": {"pid": 1}})"), HasSubstr("no agent has pid 1"));
}

// Without main, of this machine, and the first with its marker and its pre-roll.
void Day::expect_recorded(const std::vector<RecordedSession>& recorded, const json& device_id) {
  for (const RecordedSession& one : recorded) {
    const json manifest = one.manifest();
    for (const json& symbol : manifest["symbols"]) {
      EXPECT_NE(symbol.value("name", ""), "main") << "neither the rule nor the filter has it";
    }
    EXPECT_EQ(manifest["process"]["device_id"], device_id);
    std::string boot_id;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
    EXPECT_EQ(manifest["process"]["boot_id"], boot_id);
    EXPECT_LE(manifest["function_filters"][0]["at_ns"], manifest["time_start_ns"]);
    const Ending verified = collector_.ctl({"verify", one.directory()});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  const json& day = recorded[0].manifest();
  EXPECT_TRUE(std::any_of(day["markers"].begin(), day["markers"].end(), [&](const json& marker) {
    return marker["text"] == "door opens" && marker["at_ns"] > day["time_start_ns"];
  })) << day["markers"];
  EXPECT_TRUE(std::any_of(day["detail_windows"].begin(), day["detail_windows"].end(),
                          [&](const json& window) {
                            return window["pre_roll_from_ns"] >= day["time_start_ns"] &&
                                   window["pre_roll_records"] > 0;
                          }))
      << day["detail_windows"];
}

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

  ASSERT_NO_FATAL_FAILURE(expect_snapshot(session));
  ASSERT_NO_FATAL_FAILURE(expect_calls(session));
  ASSERT_NO_FATAL_FAILURE(expect_triggers_fire());
  ASSERT_NO_FATAL_FAILURE(expect_counter_fires());
  ASSERT_NO_FATAL_FAILURE(expect_detail());
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
  EXPECT_EQ(ask("WatchSession", R"({"interval": "0.05s"})")["name"], session)
      << "ends with the sealed one";
  EXPECT_THAT(refused("WatchSession", R"({"interval": "-1s"})"), HasSubstr("interval"));

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
  ASSERT_NO_FATAL_FAILURE(expect_recorded(recorded, agent["deviceId"]));
  ask("DeleteSession", name + "}");
  EXPECT_THAT(refused("GetSession", name + "}"), HasSubstr("no session"));
  ask("DetachAgent", R"({"name": "steady"})");
  EXPECT_GT(std::stoull(ask("GetStats").value("eventsStored", "0")), 100u);
}

std::vector<json> Day::list_all(const std::string& method, const std::string& list) {
  std::vector<json> all;
  std::string token;
  do {
    const json page = ask(method, R"({"page_size": 1, "page_token": ")" + token + "\"}");
    EXPECT_LE(page.value(list, json::array()).size(), 1u) << method;
    for (const json& one : page.value(list, json::array())) all.push_back(one);
    token = page.value("nextPageToken", "");
  } while (!token.empty());
  return all;
}

// What begins while the collector stops finds no room: nothing is stored, most is lost.
void Day::record_lossy(const json& before, pid_t& pid) {
  Environment environment = collector_.tracing("drop");
  environment["COLLECT_DETAIL"] = "on";
  environment["COLLECT_BUFFER_MB"] = "1";
  environment["COLLECT_EXIT_FLUSH_MS"] = "60000";
  const std::string progress = scratch_ / "progress";
  ChildProcess chaos(scratch_.path(), {traced_program("chaos"), progress, "1"}, environment);
  ASSERT_TRUE(
      eventually(kPatience, [&] { return number(ask("GetStats"), "agentsConnected") == 2; }));
  EXPECT_EQ(list_all("ListAgents", "agents").size(), 2u);
  const json busy = ask("GetStats");
  EXPECT_EQ(number(busy, "connectionsAccepted"), number(before, "connectionsAccepted") + 4);
  constexpr uint64_t kIterations = 200'000;  // more than its buffer and the sockets hold
  collector_.process().send_signal(SIGSTOP);
  const auto done = [&] {
    const auto threads = read_progress(progress, 1);
    return threads.empty() ? 0 : threads[0].done;
  };
  const uint64_t done_before = done();
  EXPECT_TRUE(eventually(kPatience, [&] { return done() >= done_before + kIterations; }));
  collector_.process().send_signal(SIGCONT);
  chaos.send_signal(SIGTERM);
  ASSERT_TRUE(chaos.wait(seconds(90)).exited_with(0));
  pid = chaos.pid();
}

// Turned away, and a page that arrived damaged.
void Day::send_noise() {
  RawConnection noise(collector_.ingest_port());
  noise.send(Octets(64, 0x2A));
  EXPECT_TRUE(noise.is_closed_by_peer());
  RawAgent raw(collector_.ingest_port(), 4'100'001);
  ASSERT_TRUE(raw.ready);
  raw.data.send(page_bytes(1, 0, events(1000, 2), true));
  ASSERT_TRUE(
      eventually(kPatience, [&] { return number(ask("GetStats"), "pagesBadChecksum") == 1; }));
  raw.control.close();
  raw.data.close();
}

void Day::expect_shown(const RecordedSession& recorded, const json& before) {
  const json& totals = recorded.manifest()["totals"];
  const json shown = ask("GetSession", request_for(recorded).dump());
  EXPECT_EQ(number(shown, "events"), totals["events"]);
  EXPECT_EQ(number(shown, "lostEvents"), totals["lost_events"]);
  EXPECT_EQ(number(shown, "lostDetailRecords"), totals["lost_detail_records"]);
  EXPECT_EQ(number(shown, "storedBytes"), totals["stored_bytes"]);
  EXPECT_LT(shown.value("startTime", "?"), shown.value("endTime", ""));
  EXPECT_GE(shown.value("startTime", ""), before.value("startTime", "?"));
  const FilesOnDisk files = files_on_disk(recorded.directory());
  EXPECT_EQ(number(shown, "containerBytes"), files.containers);
  EXPECT_GT(files.containers, 0u);
  EXPECT_LE(number(shown, "storedBytes"), files.records) << "without headers and footers";
  EXPECT_GT(number(shown, "storedBytes"), files.records * 9 / 10);
  expect_manifest(recorded);
  expect_consistent(recorded);
  expect_files_until_deleted(recorded, files);
}

void Day::expect_manifest(const RecordedSession& recorded) {
  const json& manifest = recorded.manifest();
  const json said = ask("GetManifest", request_for(recorded).dump());
  EXPECT_EQ(std::to_string(number(said, "formatVersionMajor")) + "." +
                std::to_string(number(said, "formatVersionMinor")),
            manifest["format_version"].get<std::string>());
  EXPECT_EQ(number(said, "symbolCount"), manifest["symbols"].size());
  EXPECT_EQ(number(said, "timeStartNs"), manifest["time_start_ns"]);
  EXPECT_EQ(number(said, "timeEndNs"), manifest["time_end_ns"]);
  const json& thread = manifest["threads"][0];
  EXPECT_EQ(said["threads"][0]["hasDetail"], true);
  EXPECT_EQ(thread["has_detail"], true);
  EXPECT_EQ(number(said["threads"][0], "lostDetailRecords"), thread["lost_detail_records"]);
}

// Files, one at a time, and then all of them gone.
void Day::expect_files_until_deleted(const RecordedSession& recorded, const FilesOnDisk& files) {
  std::map<std::string, uint64_t> listed;
  std::string token;
  do {
    json request = request_for(recorded);
    request["page_size"] = 1;
    request["page_token"] = token;
    const json page = ask("ListFiles", request.dump());
    for (const json& file : page["files"]) {
      listed[file.value("path", "")] = number(file, "sizeBytes");
    }
    token = page.value("nextPageToken", "");
  } while (!token.empty());
  for (const auto& [path, size] : listed) EXPECT_EQ(size, files.sizes.at(path)) << path;
  EXPECT_GE(listed.size(), 4u);
  json version = request_for(recorded);
  version["atf_version"] = 1;
  const Ending converted = tool_.call(collector_, scratch_, "ConvertSession", version.dump());
  EXPECT_TRUE(converted.exited_with(0)) << converted.errors;
  size_t reports = 0;
  for (const json& message : messages_of(converted.output)) {
    if (!message.contains("totalBytes")) continue;
    EXPECT_LE(number(message, "doneBytes"), number(message, "totalBytes")) << message;
    ++reports;
  }
  EXPECT_GT(reports, 0u) << converted.output;
  const json gone = ask("DeleteSession", request_for(recorded).dump());
  EXPECT_EQ(number(gone, "removedBytes"), files.bytes);
  EXPECT_EQ(number(gone, "removedFiles"), files.sizes.size());
  EXPECT_FALSE(std::filesystem::exists(recorded.directory()));
}

// What the control plane says of two recordings is what the programs, the files and this machine
// have. One loses: its collector stops while it continues.
TEST_P(Day, ControlPlaneShowsTheTrueState) {
  const json before = ask("GetStats");
  EXPECT_EQ(before["ingestAddress"], collector_.ingest());
  EXPECT_GT(number(before, "diskFreeBytes"), 0u);
  EXPECT_EQ(number(before, "agentsConnected") + number(before, "sessionsActive") +
                number(before, "pagesStored"),
            0u);

  // A start filter, detail, and a connection each for control and data.
  Environment environment = collector_.tracing();
  environment["COLLECT_ONLY"] = "step";
  environment["COLLECT_DETAIL"] = "on";
  ChildProcess steady(scratch_.path(), {traced_program("steady"), "pace", "600000"}, environment);
  const json agent = agent_in("AGENT_STATE_RECORDING");
  EXPECT_GE(number(agent["startFilter"], "functionsMatched"), 1u) << agent;
  EXPECT_GE(agent.value("connectTime", ""), before.value("startTime", "?")) << "as text: UTC";
  pid_t lossy_pid = 0;
  ASSERT_NO_FATAL_FAILURE(record_lossy(before, lossy_pid));
  ASSERT_NO_FATAL_FAILURE(send_noise());

  steady.send_signal(SIGUSR2);
  ASSERT_TRUE(steady.wait(seconds(30)).exited_with(0));
  const auto own = sealed_sessions(collector_.root(), steady.pid());
  const auto lossy = sealed_sessions(collector_.root(), lossy_pid);
  ASSERT_EQ(own.size(), 1u);
  ASSERT_EQ(lossy.size(), 1u);
  EXPECT_EQ(list_all("ListSessions", "sessions").size(), 3u);
  const json filtered = ask("GetSession", request_for(own[0]).dump());
  EXPECT_EQ(number(filtered["startFilter"], "functionsMatched"),
            own[0].manifest()["function_filters"][0]["functions"]);
  uint64_t events_lost = 0;
  for (const RecordedSession* recorded : {&own[0], &lossy[0]}) {
    SCOPED_TRACE(recorded->manifest()["process"]["name"].get<std::string>());
    events_lost += recorded->manifest()["totals"]["lost_events"].get<uint64_t>();
    expect_shown(*recorded, before);
  }
  EXPECT_GT(events_lost, 0u);
  const json after = ask("GetStats");
  EXPECT_EQ(number(after, "eventsLost"), events_lost);
  EXPECT_GE(number(after, "connectionsRefused"), 1u);
  EXPECT_EQ(number(after, "agentsConnected"), 0u) << after;
  EXPECT_EQ(number(after, "sessionsActive"), 1u) << "one waits for its agent; " << after;
  EXPECT_GT(number(after, "bytesReceived"), 0u);
  EXPECT_GT(number(after, "bytesStored"), 0u);
}

INSTANTIATE_TEST_SUITE_P(Tools, Day, testing::Values("COLLECT_BUF", "COLLECT_GRPCURL"),
                         [](const auto& test) { return std::string(test.param).substr(8); });

// deploy/python: stubs by protoc, and a client on them.
TEST(PythonTest, ExampleRecordsAndSaves) {
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
  const Ending absent = record("absent");
  EXPECT_TRUE(absent.exited_with(1));
  EXPECT_THAT(absent.errors, HasSubstr("no agent has process_name \"absent\""));
  EXPECT_THAT(absent.errors, HasSubstr("(NOT_FOUND)"));

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
