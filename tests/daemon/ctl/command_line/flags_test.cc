// Flags of collectctl as its command line hands them on: each changes what the program does.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "daemon/control/control_server.h"
#include "daemon/control/credentials.h"
#include "daemon/runtime/newest_recording.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/help_text.h"
#include "tests/daemon/ctl/program_runner.h"
#include "tests/fakes/tls_client.h"

namespace collect::ctl {
namespace {

namespace api = control::v1;
namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t lines_of(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

class OnlineFlagsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = control::ControlServer::start("127.0.0.1:0", collector_);
    ASSERT_TRUE(started.ok()) << to_string(started.error());
    server_ = std::move(*started);
    runner_.environment["COLLECT_CONTROL"] = server_->address();
    collector_.add_agent("1", "lua", api::AGENT_STATE_RECORDING);
    collector_.add_agent("2", "python", api::AGENT_STATE_RECORDING);
    collector_.add_session("session_20250102_030405/pid_42", api::SESSION_STATE_COMPLETE);
    collector_.add_file("manifest.json", "{}");
  }

  // Starts a command that follows something, and ends the collector once it has said `expected`.
  Ran follow(const std::vector<std::string>& arguments, const std::function<void()>& change,
             const std::string& expected) {
    runner_.start(arguments);
    collector_.wait_for_watches(1);
    change();
    EXPECT_TRUE(eventually([&] {
      return runner_.out_so_far().find(expected) != std::string::npos;
    })) << runner_.out_so_far();
    server_->shutdown(control::ControlServer::kShutdownDeadline);
    return runner_.finish();
  }

  control::FakeCollector collector_;
  std::unique_ptr<control::ControlServer> server_;
  ProgramRunner runner_;
};

api::Selector named(const std::string& process) {
  api::Selector selector;
  selector.set_process_name(process);
  return selector;
}

TEST_F(OnlineFlagsTest, DetailStartHandsOnEveryFlag) {
  const Ran ran =
      runner_.run({"detail", "start", "1", "--thread", "4711", "--thread", "name=w*", "--function",
                   "parse_*", "--duration", "5200ms", "--pre-roll", "2s"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const control::DetailCommand command = collector_.last_detail();
  EXPECT_EQ(command.mode, api::DETAIL_MODE_ON);
  EXPECT_EQ(command.target.any(), "1");
  EXPECT_THAT(command.threads, ElementsAre("4711", "name=w*"));
  EXPECT_THAT(command.functions, ElementsAre("parse_*"));
  EXPECT_EQ(command.duration_ns, 5'200'000'000u);
  EXPECT_EQ(command.pre_roll_ns, 2'000'000'000u);
  runner_.run({"detail", "start", "--arm", "--function", "f"});
  EXPECT_EQ(collector_.last_detail().mode, api::DETAIL_MODE_ARMED);
  EXPECT_THAT(collector_.last_detail().functions, ElementsAre("f"));
  runner_.run({"detail", "stop", "--thread", "12"});
  EXPECT_EQ(collector_.last_detail().mode, api::DETAIL_MODE_OFF);
  EXPECT_THAT(collector_.last_detail().threads, ElementsAre("12"));
}

TEST_F(OnlineFlagsTest, StartHandsOnEveryFlag) {
  const Ran ran = runner_.run(
      {"start", "2", "--only", "a*", "--except", "ab", "--detail", "--duration", "90s"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  const api::StartSessionRequest request = collector_.last_start();
  EXPECT_EQ(request.target().any(), "2");
  EXPECT_THAT(request.functions().only(), ElementsAre("a*"));
  EXPECT_THAT(request.functions().except(), ElementsAre("ab"));
  EXPECT_EQ(request.detail().mode(), api::DETAIL_MODE_ON);
  EXPECT_EQ(request.duration().seconds(), 90);
}

TEST_F(OnlineFlagsTest, RulesAreSetFromAFileAndShown) {
  const std::string file = ::testing::TempDir() + "flags_rules.json";
  std::ofstream(file) << R"({"rules": [{"target": {"tag": "night"}}]})";
  EXPECT_EQ(runner_.run({"rules", "--set", file}).exit_code, 0);
  EXPECT_EQ(collector_.rules().rules(0).target().tag(), "night");
  EXPECT_THAT(runner_.run({"rules"}).out, HasSubstr("night"));
  EXPECT_EQ(runner_.run({"rules", "--clear"}).exit_code, 0);
  EXPECT_EQ(collector_.rules().rules_size(), 0);
  std::remove(file.c_str());
}

TEST_F(OnlineFlagsTest, FilterHandsOnEveryFlag) {
  runner_.run({"filter", "--set", "--only", "a*", "--except", "ab", "2"});
  EXPECT_THAT(collector_.last_filter().only(), ElementsAre("a*"));
  EXPECT_THAT(collector_.last_filter().except(), ElementsAre("ab"));
  EXPECT_EQ(collector_.last_filter().target().any(), "2");
  EXPECT_EQ(runner_.run({"filter", "--set"}).exit_code, 1);
  runner_.run({"filter", "--clear"});
  EXPECT_EQ(collector_.last_filter().only_size() + collector_.last_filter().except_size(), 0);
}

TEST_F(OnlineFlagsTest, FilterShowsThoseOfTheManifest) {
  collector_.add_file("manifest.json",
                      R"({"format_version":{"major":2,"minor":0},"state":"active","threads":[],)"
                      R"("function_filters":[{"at_ns":1000,"mode":"only","only":["a*"],)"
                      R"("except":["ab"],"functions":12}]})");
  const Ran shown = runner_.run({"filter"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("1000   a*    ab      12"));
}

TEST_F(OnlineFlagsTest, IntervalOfWatchIsThatOfTheCollector) {
  collector_.add_session("session_20250102_030406/pid_43", api::SESSION_STATE_ACTIVE);
  runner_.start({"watch", "--interval", "250ms"});
  collector_.wait_for_watches(1);
  EXPECT_EQ(collector_.last_interval_ms(), 250u);
  server_->shutdown(control::ControlServer::kShutdownDeadline);
  runner_.finish();
}

TEST_F(OnlineFlagsTest, WatchFollowsAgentsThatTheFilterTakes) {
  api::Agent agent = collector_.agents(named("lua"))[0];
  api::Agent other = collector_.agents(named("python"))[0];
  agent.set_state(api::AGENT_STATE_GONE);
  other.set_state(api::AGENT_STATE_GONE);
  const Ran ran = follow(
      {"watch", "--agents", "--filter", "lua"},
      [&] {
        collector_.change_agent(api::CHANGE_KIND_CHANGED, other);
        collector_.change_agent(api::CHANGE_KIND_CHANGED, agent);
      },
      "gone  lua");
  EXPECT_THAT(ran.out, Not(HasSubstr("python")));
}

TEST_F(OnlineFlagsTest, WatchOfDevicesFollowsTheirChanges) {
  api::Device device;
  device.set_name("devices/adb-1");
  device.set_serial("emulator-5554");
  const Ran ran = follow(
      {"devices", "--watch"}, [&] { collector_.change_device(api::CHANGE_KIND_ADDED, device); },
      "emulator-5554");
  EXPECT_EQ(ran.exit_code, 1) << "it ends with the collector";
}

TEST_F(OnlineFlagsTest, InspectShowsSessionsOfTheCollector) {
  const auto inspect = [this](std::vector<std::string> more) {
    more.insert(more.begin(), "inspect");
    return runner_.run(more);
  };
  EXPECT_THAT(inspect({"--at-collector", "--files"}).out, HasSubstr("manifest.json"));
  EXPECT_THAT(inspect({"--at-collector", "--files", "--json"}).out,
              HasSubstr("{\"version\":1,\"session\""));
  EXPECT_EQ(inspect({"--at-collector", "no_such_session"}).exit_code, 1);
  EXPECT_EQ(inspect({"--at-collector", "--json"}).out, "{}");
  EXPECT_EQ(inspect({"session_20250102_030405/pid_42", "--json"}).out, "{}");
  EXPECT_THAT(inspect({"sessions/session_20250102_030405/pid_42"}).out,
              HasSubstr("  manifest.json\n"));
}

TEST_F(OnlineFlagsTest, OutputOfDownloadIsItsDirectory) {
  EXPECT_EQ(runner_.run({"download", "--output", "copy"}).exit_code, 0);
  EXPECT_EQ(contents(runner_.directory() / "copy/manifest.json"), "{}");
  EXPECT_EQ(runner_.run({"download"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(runner_.directory() / "session_20250102_030405/pid_42/manifest.json"));
  collector_.add_file("manifest.json", "{ }");
  EXPECT_EQ(runner_.run({"download", "--output", "copy"}).exit_code, 1);
  EXPECT_EQ(runner_.run({"download", "--output", "copy", "--force"}).exit_code, 0);
  EXPECT_EQ(contents(runner_.directory() / "copy/manifest.json"), "{ }");
}

TEST_F(OnlineFlagsTest, HelpOfEveryCommandNamesItAndItsFlags) {
  const std::vector<std::string> commands = testing::commands_in(runner_.run({"--help"}).out);
  EXPECT_GE(commands.size(), 30u);
  for (const std::string& command : commands) {
    const Ran ran = runner_.run({command, "--help"});
    EXPECT_EQ(ran.exit_code, 0) << command;
    EXPECT_EQ(ran.err, "") << command;
    EXPECT_THAT(ran.out, HasSubstr("Usage: collectctl " + command));
    EXPECT_THAT(ran.out, HasSubstr("-h,--help"));
  }
}

class OfflineFlagsTest : public testing::OfflineTest {
 protected:
  // 12 events of 1000..1110 ns, 10 ns apart, in thread_0, which is 4711 "main".
  void SetUp() override {
    OfflineTest::SetUp();
    write_planned_session();
  }
  Ran run(std::vector<std::string> arguments) {
    arguments.push_back(session_.string());
    return runner_.run(arguments);
  }

  ProgramRunner runner_;
};

TEST_F(OfflineFlagsTest, DefaultsToTheNewestSessionOfAdaTraces) {
  for (const char* command : {"inspect", "verify", "dump", "report"}) {
    const Ran ran = runner_.run({command});
    EXPECT_EQ(ran.exit_code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_EQ(ran.err,
              "collectctl: there is no ada_traces in this directory, and you made no recording "
              "that is known: name a capture, or record a program with collectctl run\n");
  }
  const fs::path traces = runner_.directory() / "ada_traces";
  for (const char* name : {"session_20250102_030405", "session_20250102_030404"}) {
    fs::create_directories(traces);
    fs::copy(session_.parent_path(), traces / name, fs::copy_options::recursive);
  }
  for (const char* command : {"inspect", "verify", "dump", "report"}) {
    const Ran newest = runner_.run({command});
    EXPECT_EQ(newest.exit_code, run({command}).exit_code) << newest.err;
    EXPECT_THAT(newest.err,
                HasSubstr("ada_traces/session_20250102_030405/pid_42 is the newest of 2 "));
  }
  EXPECT_EQ(runner_.run({"dump", "--json"}).out, run({"dump", "--json"}).out);
}

TEST_F(OfflineFlagsTest, DefaultsToTheLastRecordingMade) {
  const fs::path below = runner_.directory();
  const auto put = [&](const fs::path& session) {
    fs::create_directories(session.parent_path());
    fs::copy(session_.parent_path(), session, fs::copy_options::recursive);
    return session / "pid_42";
  };
  put(below / "ada_traces/session_20250102_030405");
  const fs::path noted = put(below / "elsewhere/session_20250102_030405");
  const fs::path runtime = below / "runtime";
  fs::create_directory(runtime);
  fs::permissions(runtime, fs::perms::owner_all);
  runner_.environment["XDG_RUNTIME_DIR"] = runtime;
  ::setenv("XDG_RUNTIME_DIR", runtime.c_str(), 1);
  const auto note = [](const fs::path& path, const std::string& control) {
    const Status done =
        runtime::note_newest({path, "session_20250102_030405/pid_42", control, "20250102_030405"});
    ASSERT_TRUE(done.ok()) << done.error().message;
  };
  note(noted, "127.0.0.1:7711");
  const std::string taken = "collectctl: takes your newest recording, " + noted.string() + "\n";
  EXPECT_EQ(runner_.run({"report"}).err, taken);
  // One that begins later is newer, wherever it is found.
  put(below / "ada_traces/session_20250102_030406");
  EXPECT_THAT(runner_.run({"report"}).err, HasSubstr("030406/pid_42 is the newest of 2 sessions"));
  // What is not here has to be fetched.
  note(fs::path("/nowhere/session_20250102_030409/pid_42"), "collector.example:7711");
  fs::remove_all(below / "ada_traces");
  const Ran absent = runner_.run({"report"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_THAT(absent.err, HasSubstr("is on the collector's machine: fetch it with collectctl "
                                    "--control collector.example:7711 download "
                                    "session_20250102_030405/pid_42"));
  // One of this machine that was removed is none any more.
  note(fs::path("/nowhere/session_20250102_030409/pid_42"), "127.0.0.1:7711");
  EXPECT_THAT(runner_.run({"report"}).err, HasSubstr("there is no ada_traces"));
  ::unsetenv("XDG_RUNTIME_DIR");
}

TEST_F(OfflineFlagsTest, DumpPrintsWhatItsFlagsSelect) {
  EXPECT_EQ(lines_of(run({"dump", "--json"}).out), 12u);
  EXPECT_EQ(lines_of(run({"dump", "--json", "--limit", "5"}).out), 5u);
  EXPECT_EQ(lines_of(run({"dump", "--json", "--from", "1060"}).out), 6u);
  EXPECT_EQ(lines_of(run({"dump", "--json", "--until", "1010"}).out), 2u);
  EXPECT_EQ(lines_of(run({"dump", "--json", "--thread", "4711"}).out), 12u);
  EXPECT_EQ(run({"dump", "--json", "--thread", "4712"}).exit_code, 1);
  EXPECT_EQ(lines_of(run({"dump", "--json", "--function", "parse"}).out), 1u);
  EXPECT_THAT(run({"dump", "--json", "--detail"}).out, HasSubstr("\"registers\""));
  EXPECT_THAT(run({"dump"}).out, HasSubstr("# thread 0"));
  EXPECT_THAT(run({"dump", "--merged"}).out, Not(HasSubstr("# thread 0")));
}

TEST_F(OfflineFlagsTest, ReportSortsAndLimits) {
  const std::string all = run({"report", "--sort", "name"}).out;
  EXPECT_NE(all, run({"report", "--sort", "self"}).out);
  EXPECT_EQ(run({"report", "--sort", "total"}).out, run({"report"}).out);
  const auto functions = [&](std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const std::string out = run(std::move(arguments)).out;
    size_t count = 0;
    for (size_t at = out.find("\"self_ns\""); at != std::string::npos;
         at = out.find("\"self_ns\"", at + 1)) {
      ++count;
    }
    return count;
  };
  EXPECT_GT(functions({"report"}), 2u);
  EXPECT_EQ(functions({"report", "--limit", "2"}), 2u);
  EXPECT_EQ(run({"report", "--thread", "thread_0"}).exit_code, 0);
  EXPECT_EQ(run({"report", "--thread", "thread_7"}).exit_code, 1);
}

TEST_F(OfflineFlagsTest, ReportChoosesRowsAndTimes) {
  EXPECT_THAT(run({"report", "--by", "thread"}).out, HasSubstr("tid 4711"));
  EXPECT_THAT(run({"report", "--by", "module"}).out, HasSubstr("app"));
  EXPECT_THAT(run({"report", "--by", "caller"}).out, HasSubstr(" < "));
  EXPECT_THAT(run({"report", "--percentiles"}).out, HasSubstr("p99"));
  std::string manifest = planned_manifest();
  const size_t symbol = manifest.find("\"name\":\"parse(char*)\"");
  ASSERT_NE(symbol, std::string::npos) << manifest;
  manifest.insert(symbol, "\"file\":\"src/parse.cc\",\"line\":7,");
  write_text(session_ / "manifest.json", manifest);
  EXPECT_THAT(run({"report"}).out, Not(HasSubstr("src/parse.cc")));
  EXPECT_THAT(run({"report", "--lines"}).out, HasSubstr("parse(char*)  src/parse.cc:7\n"));
  EXPECT_THAT(run({"report", "--json", "--from", "1060"}).out, HasSubstr("\"from_ns\":1060"));
  EXPECT_THAT(run({"report", "--json", "--until", "10ns"}).out, HasSubstr("\"to_ns\":1010"));
  EXPECT_EQ(run({"report", "--from", "sometime"}).exit_code, 2);
  EXPECT_THAT(run({"report", "--graph", "parse"}).out, HasSubstr("Called on the path"));
  EXPECT_EQ(run({"report", "--graph", "prase"}).exit_code, 1);
  EXPECT_THAT(run({"report", "--diff", session_.string()}).out, HasSubstr("# after: "));
}

TEST_F(OfflineFlagsTest, ColorsAreForEverybodyWhoWantsThem) {
  EXPECT_THAT(run({"report", "--color", "always"}).out, HasSubstr("\x1b[1m"));
  EXPECT_THAT(run({"inspect", "--color", "always"}).out, HasSubstr("\x1b[3"));
  EXPECT_THAT(run({"report", "--color", "auto"}).out, ::testing::Not(HasSubstr("\x1b")));
  EXPECT_THAT(run({"report"}).out, ::testing::Not(HasSubstr("\x1b"))) << "a pipe";
  EXPECT_EQ(run({"report", "--color", "sometimes"}).exit_code, 2);
}

TEST_F(OfflineFlagsTest, StrictVerifyCountsWarnings) {
  std::string text = planned_manifest();
  const std::string flag = "\"has_detail\":true";
  text.replace(text.find(flag), flag.size(), "\"has_detail\":false");
  write_text(session_ / "manifest.json", text);
  const Ran usual = run({"verify"});
  EXPECT_EQ(usual.exit_code, 0) << usual.out << usual.err;
  EXPECT_THAT(usual.out, HasSubstr("has_detail: warning: is wrong"));
  EXPECT_EQ(run({"verify", "--strict"}).exit_code, 1);
}

TEST_F(OfflineFlagsTest, OutputOfConvertAndRecoverIsTheirFile) {
  EXPECT_EQ(
      runner_.run({"convert", session_.string(), "--to", "rtc", "--output", "made.rtc"}).exit_code,
      0);
  EXPECT_TRUE(fs::exists(runner_.directory() / "made.rtc"));
  EXPECT_EQ(runner_.run({"recover", "made.rtc", "--output", "whole.rtc"}).exit_code, 0);
  EXPECT_TRUE(fs::exists(runner_.directory() / "whole.rtc"));
  EXPECT_EQ(runner_.run({"recover", "made.rtc", "--output", "whole.rtc"}).exit_code, 2);
  EXPECT_EQ(runner_.run({"recover", "made.rtc", "--output", "whole.rtc", "--force"}).exit_code, 0);
}

// A certificate that the collector's authority did not sign, a key of another one, and a name that
// the collector's certificate does not have: none of them gets through.
TEST(TlsVariablesTest, CertificateKeyAndNameComeFromTheEnvironment) {
  control::allow_tls_1_3_only();
  ProgramRunner runner;
  const fakes::Authority authority(runner.directory().string(), "ca");
  const fakes::CertifiedKey server_files = authority.issue("server");
  const fakes::CertifiedKey own = authority.issue("client");
  const fakes::Authority others(runner.directory().string(), "other_ca");
  const fakes::CertifiedKey foreign = others.issue("foreign");
  control::ControlAccess access;
  access.certificate = server_files.certificate;
  access.key = server_files.key;
  access.client_ca = authority.certificate();
  control::FakeCollector collector;
  auto server = control::ControlServer::start("127.0.0.1:0", collector, access);
  ASSERT_TRUE(server.ok()) << to_string(server.error());
  runner.environment = {{"COLLECT_CONTROL", (*server)->address()},
                        {"COLLECT_CONTROL_TLS_CA", authority.certificate()},
                        {"COLLECT_CONTROL_TLS_CERTIFICATE", own.certificate},
                        {"COLLECT_CONTROL_TLS_KEY", own.key}};
  EXPECT_EQ(runner.run({"collectors"}).exit_code, 0);
  runner.environment["COLLECT_CONTROL_TLS_NAME"] = "another.example";
  EXPECT_EQ(runner.run({"collectors"}).exit_code, 1);
  runner.environment["COLLECT_CONTROL_TLS_NAME"] = "";
  runner.environment["COLLECT_CONTROL_TLS_KEY"] = foreign.key;
  EXPECT_EQ(runner.run({"collectors"}).exit_code, 1);
  runner.environment["COLLECT_CONTROL_TLS_CERTIFICATE"] = foreign.certificate;
  EXPECT_EQ(runner.run({"collectors"}).exit_code, 1);
}

// How events stand in the document, and whether it is one document or a line for each chunk.
TEST_F(OfflineFlagsTest, ConvertWritesTheRequestedFormOfWtfJson) {
  const auto converted = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"convert", "--to",     "wtf-json",
                                        "--force", "--output", "made.wtf-json"};
    command.insert(command.end(), flags.begin(), flags.end());
    const Ran ran = run(command);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return contents(runner_.directory() / "made.wtf-json");
  };
  const std::string plain = converted({});
  EXPECT_EQ(converted({"--wtf-events", "base64", "--wtf-mode", "complete"}), plain);
  EXPECT_THAT(plain, Not(HasSubstr("\"events\"")));
  EXPECT_THAT(converted({"--wtf-events", "json"}), HasSubstr("\"events\""));
  EXPECT_NE(converted({"--wtf-mode", "partial"}), plain);
  EXPECT_EQ(run({"convert", "--to", "wtf-json", "-o", "x", "--wtf-mode", "half"}).exit_code, 2);
}

TEST_F(OfflineFlagsTest, ConvertWritesTheVersionOfAtfThatIsAsked) {
  const auto converted = [&](const std::string& from, const std::string& to,
                             const std::vector<std::string>& flags) {
    std::vector<std::string> command = {"convert", from, "--to", "atf", "--output", to};
    command.insert(command.end(), flags.begin(), flags.end());
    const Ran ran = runner_.run(command);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    return runner_.run({"dump", "--json", to}).out;
  };
  const std::string was = run({"dump", "--json"}).out;
  const std::string first = converted(session_.string(), "first", {"--atf-version", "1"});
  EXPECT_EQ(lines_of(first), 12u);
  EXPECT_THAT(first, HasSubstr("\"call_depth\":1,"));
  EXPECT_EQ(converted("first", "same", {}), first) << "the version of the input";
  EXPECT_EQ(converted("first", "second", {"--atf-version", "2"}), was);
  EXPECT_THAT(was, Not(HasSubstr("call_depth")));
  const Ran other = run({"convert", "--to", "rtc", "-o", "x.rtc", "--atf-version", "1"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, HasSubstr("--atf-version is for --to atf"));
  EXPECT_FALSE(fs::exists(runner_.directory() / "x.rtc"));
  EXPECT_EQ(run({"convert", "--to", "atf", "-o", "x", "--atf-version", "3"}).exit_code, 2);
}

}  // namespace
}  // namespace collect::ctl
