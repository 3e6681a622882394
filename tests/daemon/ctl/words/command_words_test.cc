// Every word of the command line itself but for its help, which the guide has (guide_test): what is
// printed for a wrong line, and what the commands that talk to a collector ask for and print.
// expected/ has a text for each test.
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "daemon/control/control_server.h"
#include "daemon/ctl/control/messages/message_json.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/words/command_words.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
using control::Callback;

const std::vector<Arguments> kWrongLines = {
    {"--bogus"},
    {"--json"},
    {"--control"},
    {"--control", "x:1", "repport"},
    {"--control=x:1", "bogus"},
    {"--json", "inspet", "x"},
    {"bogus", "agents"},
    {"help", "bogus"},
    {"agents", "one", "two"},
    {"devices", "one", "two"},
    {"attach"},
    {"detach"},
    {"delete"},
    {"annotate"},
    {"start", "one", "two"},
    {"start", "--duration", "1x"},
    {"rules", "--set"},
    {"sessions", "a", "b"},
    {"stop", "a", "b"},
    {"inspect", "a", "b"},
    {"inspect", "--files"},
    {"convert", "--at-collector"},
    {"convert", "--at-collector", "--to", "rtc"},
    {"convert", "--at-collector", "--atf-version", "0"},
    {"convert", "--at-collector", "--atf-version", "3"},
    {"snapshot", "a", "b"},
    {"collectors", "a"},
    {"watch", "--interval", "x"},
    {"watch", "--filter", "x"},
    {"dump", "--follow", "--slower-than", "x"},
    {"dump", "--follow", "--thread", "x"},
    {"dump", "--follow", "--limit", "-1"},
    {"dump", "--follow", "--merged"},
    {"dump", "--follow", "one", "two"},
    {"dump", "--slower-than", "1ms", "x"},
    {"top", "--sort", "x"},
    {"top", "--once", "-n", "2"},
    {"detail"},
    {"detail", "start", "--thread", "x"},
    {"detail", "start", "--duration", "-1s"},
    {"detail", "start", "--pre-roll", "1e3"},
    {"detail", "start", "--arm", "--duration", "1s"},
    {"detail", "start", "--arm", "--pre-roll", "1s"},
    {"detail", "stop", "--function", "f"},
    {"trigger", "--set", "--clear"},
    {"trigger", "--function", "x"},
    {"trigger", "--set", "--above", "1"},
    {"trigger", "--set", "--counter", "y"},
    {"trigger", "--set", "--function", "x", "--counter", "y", "--above", "1"},
    {"trigger", "--set", "--function", "x", "--longer-than", "5ms", "--throws"},
    {"trigger", "--set", "--counter", "x", "--above", "1", "--longer-than", "5ms"},
    {"trigger", "--set", "--counter", "x", "--above", "1", "--throws"},
    {"trigger", "--set", "--function", "x", "--blocked-longer-than", "5ms"},
    {"trigger", "--set", "--function", "x", "--longer-than", "5d"},
    {"trigger", "--set", "--function", "x", "--duration", "5d"},
    {"trigger", "--set", "--function", "x", "--pre-roll", "5d"},
    {"filter", "--clear", "--set"},
    {"rules", "--clear", "--set", "x"},
    {"inspect"},
    {"verify"},
    {"dump"},
    {"dump", "--thread", "main", "x"},
    {"report", "--sort", "color", "x"},
    {"report", "--by", "color", "x"},
    {"report", "--thread", "thread_", "x"},
    {"convert"},
    {"convert", "x", "--to", "pdf", "-o", "y"},
    {"convert", "x", "--to", "rtc"},
    {"convert", "x", "-o", "y"},
    {"convert", "x", "--to", "atf", "-o", "y", "--atf-version", "3"},
    {"convert", "x", "--to", "rtc", "-o", "y", "--atf-version", "2"},
    {"convert", "x", "--to", "wtf-json", "-o", "y", "--wtf-events", "x"},
    {"convert", "x", "--to", "wtf-json", "-o", "y", "--wtf-mode", "x"},
    {"convert", "x", "--to", "rtc", "-o", "y", "--from", "1"},
    {"convert", "x", "--to", "rtc", "-o", "y", "--until", "1"},
    {"convert", "x", "--to", "rtc", "-o", "y", "--thread", "1"},
    {"convert", "x", "--to", "rtc", "-o", "y", "--function", "f"},
    {"convert", "x", "--to", "chrome", "-o", "y", "--thread", "main"},
    {"convert", "x", "--to", "chrome", "-o", "y", "--from", "2", "--until", "1"},
    {"convert", "x", "--to", "chrome", "-o", "y", "--from", "2", "--until", "2"},
    {"recover"},
    {"symbolize"},
    {"symbolize", "x", "--symbols", "no-such-folder"},
    {"run"},
    {"run", "--"},
    {"run", "--bogus", "--", "true"},
    {"run", "--detail", "maybe", "true"},
    {"run", "--when-full", "maybe", "true"},
    {"run", "--drain", "maybe", "true"},
    {"run", "--buffer", "0", "true"},
    {"run", "--buffer", "16385", "true"},
    {"run", "--max-depth", "0", "true"},
    {"run", "--max-depth", "1000001", "true"},
    {"run", "--max-rate", "0", "true"},
    {"run", "--longer-than", "0", "true"},
    {"run", "--longer-than", "3600001ms", "true"},
    {"run", "--longer-than", "x", "true"},
    {"run", "--max-time", "0", "true"},
    {"run", "--max-time", "24000.001h", "true"},
    {"run", "--max-time", "x", "true"},
    {"run", "--max-size", "0", "true"},
    {"run", "--max-size", "1X", "true"},
    {"run", "--atf-version", "0", "true"},
    {"run", "--atf-version", "3", "true"},
    {"run", "--only"},
    {"doctor", "x"},
    {"android"},
    {"android", "run"},
    {"android", "run", "--when-full", "maybe", "com.example.app"},
    {"android", "run", "com.example.app", ".Main", "more"},
    {"android", "attach"},
    {"android", "attach", "com.example.app", "more"},
    {"android", "undo"},
    {"ios"},
    {"ios", "run"},
    {"ios", "run", "UDID"},
    {"ios", "attach", "--port", "0"},
    {"ios", "attach", "--port", "65536"},
};

TEST_F(CommandWords, WrongUsage) {
  for (const Arguments& line : kWrongLines) {
    EXPECT_NE(run(line).exit_code, 0) << joined(line);
  }
  text_.expect("usage");
}

// Answers with something in every field, and for the target "half" with one agent that could and
// one that could not.
class FullCollector final : public control::FakeCollector {
 public:
  static void set_error(google::rpc::Status* error) { error->set_message("it said \x1b no"); }

  void start_session(const api::StartSessionRequest& request,
                     Callback<api::StartSessionResponse> done) override {
    FakeCollector::start_session(request, [](auto) {});
    said(request);
    api::StartSessionResponse response;
    add_recordings(request.target(), response);
    done(response);
  }
  void stop_session(const api::Selector& target, Callback<api::StopSessionResponse> done) override {
    said(target);
    api::StopSessionResponse response;
    add_recordings(target, response);
    done(response);
  }
  void manifest(const std::string& name, Callback<api::Manifest> done) override {
    api::Manifest manifest;
    manifest.set_session(name);
    manifest.set_state("complete");
    manifest.set_format_version_major(2);
    manifest.set_format_version_minor(3);
    manifest.set_symbol_count(1234);
    for (uint32_t i = 0; i < 2; ++i) {
      api::ManifestThread& thread = *manifest.add_threads();
      thread.set_id(i);
      thread.set_thread_id(4711 + i);
      thread.set_name(i == 0 ? "main" : "w\x1b");
      thread.set_events(1'000'000 * (i + 1));
      thread.set_detail_records(2000 + i);
      thread.set_lost_events(3 * i);
      thread.set_lost_detail_records(4000 * i);
    }
    api::ManifestModule& module = *manifest.add_modules();
    module.set_module_id(17);
    module.set_path("/lib/libx.so\x1b");
    module.set_build_id("0102ab");
    api::ManifestGap& gap = *manifest.add_gaps();
    gap.set_thread(1);
    gap.set_lane("index");
    gap.set_lost(1003);
    gap.set_before_seq(99);
    gap.set_reason("ring full");
    for (const uint64_t count : {1, 2, 1000}) {
      api::ManifestStall& stall = *manifest.add_stalls();
      if (count == 2) stall.set_thread(5);
      stall.set_kind("stopped");
      stall.set_stalled_ns(2'500'000'000);
      stall.set_first_ns(10);
      stall.set_last_ns(20);
      stall.set_count(count);
    }
    for (const uint64_t end : {0, 900}) {
      api::ManifestDetailWindow& window = *manifest.add_detail_windows();
      window.set_mode("armed");
      window.set_start_ns(100);
      window.set_end_ns(end);
    }
    done(manifest);
  }
  api::Stats stats() override {
    api::Stats stats;
    stats.set_version("1.2\x1b");
    stats.set_root("/data");
    stats.set_ingest_address("0.0.0.0:7710");
    stats.set_agents_connected(1001);
    stats.set_sessions_active(1002);
    stats.set_connections_accepted(1003);
    stats.set_connections_refused(1004);
    stats.set_bytes_received(1'500'000);
    stats.set_bytes_stored(2'500'000);
    stats.set_pages_stored(1005);
    stats.set_pages_decoded(1006);
    stats.set_pages_bad_checksum(1007);
    stats.set_events_stored(1008);
    stats.set_events_lost(1009);
    stats.set_detail_records_stored(1010);
    stats.set_disk_free_bytes(3'500'000'000);
    stats.set_resident_bytes(4'500'000);
    return stats;
  }
  void set_detail(const control::DetailCommand& command,
                  Callback<std::vector<api::DetailOutcome>> done) override {
    said(command.target);
    seen_ += "  " + std::to_string(command.mode) + " for " + std::to_string(command.duration_ns) +
             " from " + std::to_string(command.pre_roll_ns);
    for (const std::string& function : command.functions) seen_ += " function " + function;
    for (const std::string& thread : command.threads) seen_ += " thread " + thread;
    seen_ += "\n";
    std::vector<api::DetailOutcome> outcomes(is_half(command.target) ? 2 : 1);
    outcomes[0].set_agent("agents/1");
    outcomes[0].set_session("sessions/one");
    outcomes[0].set_detail(command.mode);
    outcomes[0].set_functions_matched(1234);
    outcomes[0].set_pre_roll_records(5678);
    outcomes[0].add_warnings("no pre-roll\x1b");
    if (is_half(command.target)) {
      outcomes[1].set_agent("agents/2");
      set_error(outcomes[1].mutable_error());
    }
    if (command.target.any() == "nobody") outcomes.clear();
    done(outcomes);
  }
  void set_triggers(const api::SetTriggersRequest& request,
                    Callback<api::SetTriggersResponse> done) override {
    said(request);
    FakeCollector::set_triggers(request, is_half(request.target()) ? half_of(done) : done);
  }
  void set_function_filter(const api::SetFunctionFilterRequest& request,
                           Callback<api::SetFunctionFilterResponse> done) override {
    said(request);
    FakeCollector::set_function_filter(request, is_half(request.target()) ? half_of(done) : done);
  }
  void annotate(const api::AnnotateRequest& request,
                Callback<api::AnnotateResponse> done) override {
    said(request);
    FakeCollector::annotate(request, is_half(request.target()) ? half_of(done) : done);
  }
  void set_rules(const api::Rules& rules, Callback<api::Rules> done) override {
    said(rules);
    FakeCollector::set_rules(rules, std::move(done));
  }

  // What was asked for since the last look.
  std::string seen() { return std::exchange(seen_, ""); }

 private:
  static bool is_half(const api::Selector& target) { return target.any() == "half"; }

  void said(const google::protobuf::Message& request) {
    seen_ += "  " + json_line(json_of(request));
  }

  template <class Response>
  static void add_recordings(const api::Selector& target, Response& response) {
    api::RecordingOutcome& outcome = *response.add_outcomes();
    outcome.set_agent("agents/1");
    api::Session& session = *outcome.mutable_session();
    session.set_name("sessions/session_20260131_235959/pid_7");
    session.set_state(api::SESSION_STATE_ACTIVE);
    session.set_status("of \x1b");
    session.set_process_name("app\n");
    session.set_threads(2);
    session.set_events(1'234'567);
    session.set_lost_events(1000);
    session.set_lost_detail_records(2000);
    session.set_detail_records(3000);
    session.set_stored_bytes(1'500'000);
    session.set_container_bytes(2'000'000);
    session.mutable_start_time()->set_seconds(100);
    session.mutable_end_time()->set_seconds(103);
    if (!is_half(target)) return;
    api::RecordingOutcome& other = *response.add_outcomes();
    other.set_agent("agents/2");
    set_error(other.mutable_error());
  }

  template <class Response>
  static Callback<Response> half_of(Callback<Response> done) {
    return [done](Result<Response> response) {
      if (response.ok()) {
        auto& outcome = *response->add_outcomes();
        outcome.set_agent("agents/2");
        set_error(outcome.mutable_error());
      }
      done(std::move(response));
    };
  }

  std::string seen_;
};

class OnlineWords : public CommandWords {
 protected:
  void SetUp() override {
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    runner_.environment["COLLECT_CONTROL"] = server_->address();
    text_.show_as(server_->address(), "ADDRESS");
    text_.show_as("\x1b", "<ESC>");
  }
  // With what the collector was asked for in front of what is printed.
  Ran ask(const Arguments& arguments) {
    Ran ran = runner_.run(arguments);
    if (arguments.front() == "annotate") {  // it says what time it is
      const std::regex time_of_day("[0-9]{2}:[0-9]{2}:[0-9]{2}\\.[0-9]{3}");
      ran.out = std::regex_replace(ran.out, time_of_day, "14:03:05.250");
    }
    text_.add(joined(arguments), collector_.seen() + ran.out, ran.err, ran.exit_code);
    return ran;
  }
  void ask_both(Arguments arguments) {
    ask(arguments);
    arguments.emplace_back("--json");
    ask(arguments);
  }

  FullCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
};

TEST_F(OnlineWords, AgentAndSessionListsMatchCommittedText) {
  ask_both({"agents"});
  ask_both({"sessions"});
  ask({"agents", "nobody"});
  ask({"sessions", "nobody"});
  collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
  api::Agent agent;
  agent.set_name("agents/2");
  agent.set_state(api::AGENT_STATE_GONE);
  agent.set_process_name("old");
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  agent.set_name("agents/3");
  agent.set_state(api::AGENT_STATE_CONNECTED);
  agent.set_process_name("py\x1b");
  agent.set_pid(7);
  agent.set_device_id("id\x1b");
  agent.set_detail(api::DETAIL_MODE_ON);
  agent.set_session("sessions/one");
  agent.set_status("since\x1b then");
  agent.set_address("10.0.0.1:1");
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  agent.set_name("agents/4");
  agent.set_device_model("Phone 1");
  agent.clear_status();
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  agent.set_name("agents/5");
  agent.set_state(api::AGENT_STATE_DIALING);
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  agent.set_name("agents/6");
  agent.set_status("refused\x1b");
  collector_.change_agent(api::CHANGE_KIND_ADDED, agent);
  ask_both({"agents"});
  ask({"agents", "py\x1b"});
  ask({"agents", "7"});
  collector_.add_session("session_20260131_235959/pid_7", api::SESSION_STATE_RECOVERED);
  collector_.add_session("session_20260131_235959/pid_8", api::SESSION_STATE_FAILED);
  ask_both({"sessions"});
  ask({"sessions", "tag-session_20260131_235959/pid_7"});
  ask({"attach", "127.0.0.1:7720"});
  ask_both({"detach", "agents/3"});
  ask_both({"agents", "--threads"});
  ask({"agents", "--threads", "agents/1"});
  ask({"--json", "attach", "127.0.0.1:7720"});
  ask_both({"collectors"});
  text_.expect("online_lists");
}

TEST_F(OnlineWords, RecordingCommandsMatchCommittedText) {
  for (const char* target : {"one", "half"}) {
    ask_both({"start", target, "--only", "a*", "--only", "b", "--except", "ab", "--except", "c",
              "--detail", "--duration", "1.5s"});
    ask_both({"stop", target});
    ask_both({"detail", "start", target, "--thread", "4711", "--thread", "name=w*", "--function",
              "f", "--function", "g", "--duration", "5200ms", "--pre-roll", "2s"});
    ask_both({"detail", "start", "--arm", target, "--function", "f", "--function", "g", "--thread",
              "1"});
    ask_both({"detail", "stop", target, "--thread", "1", "--thread", "2"});
    ask_both({"trigger", "--set", target, "--function", "f", "--function", "g", "--longer-than",
              "5ms", "--duration", "1s", "--until", "h", "--until", "i", "--pre-roll", "2s",
              "--times", "3"});
    ask_both({"trigger"});
    ask_both({"filter", target, "--set", "--only", "a*", "--only", "b", "--except", "c", "--except",
              "d"});
    ask_both({"annotate", "door opens", target});
  }
  ask({"start"});
  ask({"start", "--except", "x"});
  ask({"stop"});
  ask({"detail", "start"});
  ask({"detail", "start", "--arm"});
  ask({"detail", "stop", "nobody"});
  ask({"trigger", "--set"});
  ask({"trigger", "--set", "--counter", "depth", "--above", "-3"});
  ask({"trigger", "--set", "--blocked-longer-than", "50ms", "--times", "1"});
  ask({"trigger", "one"});
  ask({"trigger", "--set", "--function", "f", "--throws"});
  ask({"trigger", "one"});
  ask({"trigger", "--set", "--function", "f"});
  ask({"trigger", "one"});
  ask({"trigger", "--clear", "one"});
  ask({"trigger"});
  ask({"trigger", "--clear"});
  ask({"filter"});
  ask({"filter", "--clear"});
  ask({"filter", "--set"});
  ask({"filter", "--set", "--except", "x"});
  ask({"annotate", "door opens"});
  text_.expect("online_recordings");
}

TEST_F(OnlineWords, RuleCommandsMatchCommittedText) {
  const auto put = [&](const std::string& rules) {
    std::ofstream(runner_.directory() / "rules.json", std::ios::trunc) << rules;
  };
  text_.show_as(runner_.directory().string(), "DIR");
  ask_both({"rules"});
  put(R"({"rules": [{"target": {"process_name": "a*"}, "action": "idle"}]})");
  ask_both({"rules", "--set", "rules.json"});
  ask_both({"rules"});
  put(R"({"rules": [{"target": {"tag": "a"}}, {"target": {"tag": "b"}}]})");
  ask({"rules", "--set", "rules.json"});
  put("{}");
  ask({"rules", "--set", "rules.json"});
  runner_.input = R"({"rules": [{"target": {"tag": "typed"}}]})";
  ask({"rules", "--set", "-"});
  ask_both({"rules", "--clear"});
  put("{\"rules\": [{\"colour\": \"red\"}]}");
  ask({"rules", "--set", "rules.json"});
  ask({"rules", "--set", "none.json"});
  // As long as it may be, and a byte more.
  const size_t most = 4u << 20;
  put("{}" + std::string(most - 2, ' '));
  ask({"rules", "--set", "rules.json"});
  put("{}" + std::string(most - 1, ' '));
  ask({"rules", "--set", "rules.json"});
  text_.expect("online_rules");
}

TEST_F(OnlineWords, StoredSessionCommandsMatchCommittedText) {
  const std::string id = "session_20260131_235959/pid_7", name = "sessions/" + id;
  collector_.add_session(id, api::SESSION_STATE_COMPLETE);
  collector_.add_file("manifest.json", "{\"a\":\"\x1b\"}\n");
  collector_.add_file("thread_0/index.atf", std::string(1'500'000, 'x'));
  collector_.add_file("thread_0/note\x1b", "n");
  ask_both({"inspect", "--at-collector", "--files"});
  ask({"inspect", "--at-collector", "--files", name});
  ask({"inspect", "--at-collector", "none"});
  ask_both({"inspect", "--at-collector", name});
  ask_both({"inspect", name});
  ask({"inspect", "--at-collector"});
  ask_both({"snapshot", name});
  ask({"snapshot"});
  ask_both({"snapshot", "late"});
  ask_both({"delete", name});
  ask({"convert", "--at-collector", name, "--atf-version", "1"});
  ask({"convert", "--at-collector", "--atf-version", "2", "--strict"});
  ask({"convert", "--at-collector", name, "--atf-version", "1", "--json"});
  const Arguments two = {"manifest.json", "thread_0/index.atf"};
  Arguments line = {"download", name};
  line.insert(line.end(), two.begin(), two.end());
  ask(line);
  ask(line);
  line.insert(line.end(), {"-o", "copy", "--json"});
  ask(line);
  ask(line);
  ask({"download", name, "thread_0/none"});
  ask({"download", name});
  ask({"download", "none"});
  collector_.add_file("manifest.json", "{}");
  line.pop_back();
  ask(line);
  line.emplace_back("--force");
  ask(line);
  collector_.cut_files_at(700'000);
  collector_.add_file("manifest.json", "{ }");
  ask(line);
  collector_.cut_files_at(UINT64_MAX);
  ask(line);
  collector_.add_session(id, api::SESSION_STATE_ACTIVE);
  line = {"download", "-o", "live", name};
  line.insert(line.end(), two.begin(), two.end());
  ask(line);
  collector_.fail_with({Code::kNotFound, "no such thing\x1b"});
  for (const Arguments& failing :
       {Arguments{"inspect", "--at-collector", "--files"},
        Arguments{"inspect", "--at-collector", "--json"}, Arguments{"snapshot"},
        Arguments{"delete", "x"}, Arguments{"convert", "--at-collector", "--atf-version", "1"},
        Arguments{"download"}, Arguments{"attach", "x:1"}, Arguments{"detach", "x"},
        Arguments{"rules", "--set", "-"}}) {
    runner_.input = "{}";
    ask(failing);
  }
  text_.expect("online_stored");
}

TEST_F(OnlineWords, WithoutACollector) {
  runner_.environment["COLLECT_CONTROL"] = "127.0.0.1:1";  // privileged and unused
  for (const Arguments& line : {Arguments{"agents"},
                                {"sessions"},
                                {"devices"},
                                {"devices", "--watch"},
                                {"attach", "x"},
                                {"detach", "x"},
                                {"start"},
                                {"stop"},
                                {"rules"},
                                {"inspect", "--at-collector"},
                                {"inspect", "--at-collector", "--json"},
                                {"inspect", "--at-collector", "--files"},
                                {"download"},
                                {"delete", "x"},
                                {"snapshot"},
                                {"convert", "--at-collector", "--atf-version", "1"},
                                {"annotate", "x"},
                                {"collectors"},
                                {"watch"},
                                {"watch", "--agents"},
                                {"dump", "--follow"},
                                {"top", "--once"},
                                {"detail", "start"},
                                {"detail", "start", "--arm"},
                                {"detail", "stop"},
                                {"trigger"},
                                {"trigger", "--clear"},
                                {"filter"},
                                {"filter", "--clear"},
                                {"rules", "--clear"},
                                {"collectors", "--token-file", "x"},
                                {"collectors", "--tls-certificate", "x"},
                                {"collectors", "--tls-ca", "none"},
                                {"collectors", "--tls-ca", "none", "--tls-key", "x"},
                                {"collectors", "--tls-ca", "none", "--tls-certificate", "x"},
                                {"--control", "unix:/none", "collectors", "--token-file", "x"},
                                {"--control", "x", "collectors"},
                                {"--control", "abstract:x", "collectors"},
                                {"collectors", "--control", "no-such-host.invalid:1"}}) {
    ask(line);
  }
  text_.expect("online_nobody");
}

}  // namespace
}  // namespace collect::ctl
