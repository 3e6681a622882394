// Peers whose names are escape sequences, forged lines and reversed text, against the real daemon:
// no raw control but \n and \t reaches its log or the terminal of someone who asks about them,
// nothing that shows nothing or turns text around does, and --json still has the exact names.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/phones/fake_adb_server.h"
#include "tests/formats/core/terminal_safe.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint32_t kPid = 4'150'000;  // above the largest that Linux gives out

// What a line of the log begins with, so that a line end in a name would forge one.
constexpr const char* kForged = "2026-01-01T00:00:00.000 warning forged";
// The same name as a person sees it begins so.
constexpr const char* kShown =
    "evil\\n2026-01-01T00:00:00.000 warning forged\\x1b[2J\\x1b]0;t\\x07";

std::string hostile(const std::string& which) {
  return "evil\n" + std::string(kForged) +
         "\x1b[2J\x1b]0;t\x07\r\b\x7f"
         "\u0085\u009b31m"                             // C1: next line, control sequence introducer
         "\u061c\u200e\u200f\u202a\u202e\u2066\u2069"  // direction
         "\u00ad\u200b\u200d\u2060\ufeff\u2028\u2029"  // invisible, separators
         "\U000e0041\U000e007f"                        // tags
         "\\x1b " +
         which;
}

std::string forged_line(const std::string& text) {
  if (text.starts_with(kForged)) return "the first line is forged";
  return text.find("\n" + std::string(kForged)) == std::string::npos ? "" : "a line is forged";
}

void expect_harmless(const std::string& text, const std::string& what) {
  EXPECT_EQ(collect::testing::raw_character(text), "") << what;
  EXPECT_EQ(forged_line(text), "") << what << ":\n" << text;
}

class RedteamText : public ::testing::Test {
 protected:
  std::string shown(const Arguments& arguments) {
    const Ending ending = collector_->ctl(arguments);
    std::string what;
    for (const std::string& argument : arguments) what += argument.substr(0, 40) + " ";
    EXPECT_FALSE(ending.timed_out || ending.signal != 0) << what << ending.describe();
    expect_harmless(ending.output, what + "(stdout)");
    expect_harmless(ending.errors, what + "(stderr)");
    return ending.output + ending.errors;
  }

  static wire::Hello hostile_hello(wire::Channel channel, const std::string& process_id) {
    wire::Hello greeting = hello(channel, kPid, process_id);
    greeting.set_process_name(hostile("process"));
    greeting.set_device_id(hostile("device"));
    greeting.set_device_model(hostile("model"));
    greeting.set_tag(hostile("tag"));
    greeting.set_boot_id(hostile("boot"));
    greeting.set_agent_version(hostile("version"));
    greeting.set_executable("/" + hostile("executable"));
    return greeting;
  }

  // Says every name that an agent can say, and some events.
  static void record(RawConnection& control, RawConnection& data) {
    const std::string process_id = "redteam text id!";
    fakes::Secrets secrets;
    ASSERT_TRUE(be_welcomed(control, hostile_hello(wire::CHANNEL_CONTROL, process_id), secrets));
    ASSERT_TRUE(be_welcomed(data, hostile_hello(wire::CHANNEL_DATA, process_id), secrets));
    wire::RecordingStart start;
    start.set_recording(1);
    start.set_start_ns(1);
    start.set_atf_version(2);
    wire::Modules modules;
    wire::Module* module = modules.add_modules();
    module->set_path("/" + hostile("module"));
    module->set_size(1 << 20);
    wire::StreamOpen open;
    open.set_recording(1);
    open.set_stream_id(1);
    open.set_thread_id(kPid);
    open.set_thread_name(hostile("thread"));
    open.set_start_ns(1);
    wire::DetailState detail;
    detail.set_mode(wire::DETAIL_ON);
    detail.set_reason(hostile("detail"));
    ASSERT_TRUE(data.send(wire::FrameType::kRecordingStart, start));
    ASSERT_TRUE(data.send(wire::FrameType::kModules, modules));
    ASSERT_TRUE(data.send(wire::FrameType::kStreamOpen, open));
    ASSERT_TRUE(data.send(wire::FrameType::kDetailState, detail));
    ASSERT_TRUE(data.send(page_bytes(1, 0, events(1000, 100))));
    ASSERT_TRUE(control.receive_ack(1, 100));
  }

  static void end(RawConnection& control, RawConnection& data) {
    wire::StreamClose close;
    close.set_stream_id(1);
    close.set_index_count(100);
    close.set_thread_name(hostile("thread"));
    wire::RecordingEnd recording_end;
    recording_end.set_recording(1);
    recording_end.set_reason(hostile("end"));
    wire::Bye bye;
    bye.set_reason(hostile("bye"));
    ASSERT_TRUE(data.send(wire::FrameType::kStreamClose, close));
    ASSERT_TRUE(data.send(wire::FrameType::kRecordingEnd, recording_end));
    ASSERT_TRUE(control.send(wire::FrameType::kBye, bye));
  }

  // The log so far, which must have come to say `wanted`.
  std::string log_with(const std::string& wanted) {
    EXPECT_TRUE(eventually(seconds(30), [&] {
      return collector_->process().errors().find(wanted) != std::string::npos;
    })) << collector_->process().errors();
    return collector_->process().errors();
  }

  Scratch scratch_;
  std::unique_ptr<CollectorProcess> collector_;
};

TEST_F(RedteamText, EscapesNamesOfAnAgent) {
  collector_ = std::make_unique<CollectorProcess>(scratch_, Arguments{"--resume-ms", "2000"});
  RawConnection control(collector_->ingest_port());
  RawConnection data(collector_->ingest_port());
  record(control, data);
  EXPECT_NE(shown({"agents"}).find(kShown), std::string::npos) << "the name is still to be read";
  for (const Arguments& command : std::vector<Arguments>{{"agents", "no such agent\x1b[2J"},
                                                         {"detach", "absent"},
                                                         {"stop", "absent"},
                                                         {"inspect", "--at-collector"},
                                                         {"inspect", "--at-collector", "absent"},
                                                         {"sessions"},
                                                         {"inspect", "--at-collector", "--files"},
                                                         {"collectors"},
                                                         {"annotate", hostile("marker")}}) {
    shown(command);
  }
  // The same in JSON: harmless to look at, exact to read.
  const json agents = json::parse(shown({"--json", "agents"}).substr(0));
  EXPECT_EQ(agents.at("agents").at(0).at("process_name"), hostile("process"));
  EXPECT_EQ(agents.at("agents").at(0).at("tag"), hostile("tag"));
  EXPECT_NE(shown({"--json", "inspect", "--at-collector"}).find("\\u202e"), std::string::npos);
  end(control, data);
  const auto sessions = sealed_sessions(collector_->root(), kPid);
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].manifest().at("threads").at(0).at("name"), hostile("thread"))
      << "the manifest has what the agent said";
  EXPECT_NE(shown({"sessions"}).find(kShown), std::string::npos);
  shown({"agents"});
  shown({"watch"});
  const std::string log = log_with("is sealed");
  expect_harmless(log, "the log");
  EXPECT_NE(log.find("\"" + std::string(kShown)), std::string::npos) << "quoted";
}

// What a peer says instead of a name: reasons.
TEST_F(RedteamText, EscapesReasonsOfRefusals) {
  collector_ = std::make_unique<CollectorProcess>(scratch_);
  RawConnection refusing(collector_->ingest_port());
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_PROTOCOL);
  refuse.set_reason(hostile("refusal"));
  ASSERT_TRUE(refusing.send(wire::FrameType::kRefuse, refuse));
  EXPECT_TRUE(refusing.is_closed_by_peer());
  expect_harmless(log_with("refused by the agent: evil"), "the log");

  RawConnection control(collector_->ingest_port());
  RawConnection data(collector_->ingest_port());
  record(control, data);
  refuse.set_reason(hostile("later") + std::string(60'000, '\x1b'));
  ASSERT_TRUE(control.send(wire::FrameType::kRefuse, refuse));
  expect_harmless(log_with("disconnected: "), "the log");
  EXPECT_LT(shown({"agents"}).size(), 100'000u) << "and what is kept of it has a bound";
}

// A session that came from elsewhere: its files say what they like.
TEST_F(RedteamText, ForeignSessionsCannotMoveTheCursor) {
  collector_ = std::make_unique<CollectorProcess>(scratch_, Arguments{"--resume-ms", "2000"});
  {
    RawConnection control(collector_->ingest_port());
    RawConnection data(collector_->ingest_port());
    record(control, data);
    end(control, data);
  }
  const auto sessions = sealed_sessions(collector_->root(), kPid);
  ASSERT_EQ(sessions.size(), 1u);
  const std::string directory = scratch_ / hostile("directory") + "/session";
  fs::create_directories(fs::path(directory).parent_path());
  fs::copy(sessions[0].directory(), directory, fs::copy_options::recursive);
  json manifest = sessions[0].manifest();
  manifest["state"] = hostile("state");
  manifest["format_version"] = hostile("version");
  manifest[hostile("key")] = 1;
  manifest["symbols"] = json::array();
  for (const uint64_t id : {0x1000, 0x1010, 0x1020, 0x1030}) {
    manifest["symbols"].push_back({{"function_id", id}, {"name", hostile("function")}});
  }
  std::ofstream(directory + "/manifest.json") << manifest;
  const std::string made = scratch_ / "made";
  const std::vector<Arguments> commands = {
      {"inspect", directory},
      {"verify", directory},
      {"verify", "--strict", directory},
      {"dump", directory},
      {"dump", "--merged", directory, sessions[0].directory()},
      {"dump", "--function", hostile("pattern"), directory},
      {"report", directory},
      {"recover", directory},
      {"convert", directory, "--to", "rtc", "-o", made + ".rtc"},
      {"convert", directory, "--to", "wtf", "-o", made + ".wtf-trace"},
      {"convert", directory, "--to", "wtf-json", "-o", made + ".wtf-json"},
      {"convert", directory, "--to", "dial9", "-o", made + ".dial9"},
      {"convert", directory, "--to", "wtf", "-o", made + ".wtf-trace"},
      {"inspect", directory + "/nothing here"}};
  for (const Arguments& command : commands) {
    shown(command);
    Arguments as_json = {"--json"};
    as_json.insert(as_json.end(), command.begin(), command.end());
    shown(as_json);
  }
  for (const char* kind : {".rtc", ".wtf-trace", ".wtf-json", ".dial9"}) {
    ASSERT_TRUE(fs::exists(made + kind)) << kind;
    for (const char* command : {"inspect", "verify", "dump"}) {
      shown({command, made + kind});
      shown({"--json", command, made + kind});
    }
    shown({"recover", made + kind, "-o", made + kind + ".recovered"});
    shown({"convert", made + kind, "--to", "atf", "-o", made + kind + ".atf"});
  }
  // A file of no format under a hostile name, and one that is not there.
  std::ofstream(directory + "/\x9b garbage\xff") << hostile("content");
  shown({"inspect", directory + "/\x9b garbage\xff"});
  shown({"--json", "inspect", directory + "/\x9b garbage\xff"});
  shown({"no such command\x1b[2J\n"});
}

// The words of an adb server: serials, models, states, errors. Some are no UTF-8, which would make
// gRPC clients refuse the whole answer.
TEST_F(RedteamText, EscapesAnswersOfAnAdbServer) {
  fakes::FakeAdbServer adb;
  adb.start();
  fakes::FakePhone phone;
  phone.attributes = "usb:1-1 model:Sim\x1b[2J\u202e\u200b\x9b\xff";
  adb.plug("R58\x1b[31m\u202e\xff\xc3", phone);
  fakes::FakePhone offline;
  offline.state = "offline";
  offline.attributes = "";
  adb.plug("127.0.0.1:5555;reboot$(id)`id`", offline);
  fakes::FakePhone strange;
  strange.state = "no permissions (\x1b]0;t\x07 \xff\u2066; see http://example.org)";
  adb.plug("HT12", strange);
  adb.fail_next("shell", "closed\n" + std::string(kForged) + "\x1b[2J\xff");
  collector_ = std::make_unique<CollectorProcess>(scratch_, Arguments{"--adb", adb.address()});
  std::string devices;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    const Ending ending = collector_->ctl({"devices"});
    devices = ending.output;
    return ending.exited_with(0) && devices.find("HT12") != std::string::npos &&
           devices.find("R58\\x1b[31m\\u{202e}") != std::string::npos;
  })) << devices;
  expect_harmless(devices, "devices");
  EXPECT_EQ(devices.find("adb connect 127.0.0.1:5555;"), std::string::npos)
      << "no one is asked to paste a shell's commands";
  const json answer = json::parse(shown({"--json", "devices"}));
  EXPECT_EQ(answer.at("devices").size(), 3u);
  shown({"devices", "R58"});
  expect_harmless(log_with("HT12"), "the log");
}

}  // namespace
}  // namespace collect::e2e
