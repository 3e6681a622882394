// Each setting of a running collectord changes what it does: a value that main() forgot to hand on
// shows here.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "tests/daemon/symbolize/poison.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/own_network.h"

namespace collect::e2e {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kPid = 4'700'000;  // above the largest that Linux gives out
constexpr uint32_t kAddress = 0x1000;
constexpr uint32_t kPageEvents = 8'192;  // 256 KiB

// At uneven times: even ones would take hardly any room in a container.
Octets page(uint64_t number) {
  Octets records = events(0, kPageEvents);
  for (uint64_t i = 0; i < kPageEvents; ++i) {
    const uint64_t at = number * kPageEvents + i;
    store_le<uint64_t>(records.data() + 32 * i, 1'000 + 64 * at + at * 2'654'435'761 % 61);
  }
  return page_bytes(1, number * kPageEvents, records);
}

void end_recording(RawAgent& agent, uint64_t index_count) {
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_index_count(index_count);
  ASSERT_TRUE(agent.data.send(wire::FrameType::kStreamClose, close));
  wire::RecordingEnd end;
  end.set_recording(1);
  ASSERT_TRUE(agent.data.send(wire::FrameType::kRecordingEnd, end));
}

// A session of this many pages, sealed; how many containers it has.
size_t containers_of(const Scratch& scratch, const Arguments& settings, uint64_t pages,
                     const std::string& root) {
  CollectorProcess collector(scratch, settings, root);
  RawAgent agent(collector.ingest_port(), kPid);
  EXPECT_TRUE(agent.ready);
  // One after the other: what is stored in one go is in one container.
  for (uint64_t i = 0; i < pages; ++i) {
    EXPECT_TRUE(agent.data.send(page(i)));
    EXPECT_TRUE(agent.control.receive_ack(1, (i + 1) * kPageEvents));
  }
  end_recording(agent, pages * kPageEvents);
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid));
  if (sessions.size() != 1) return 0;
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(sessions[0].directory())) {
    count += entry.path().extension() == ".rtc" ? 1 : 0;
  }
  return count;
}

TEST(SettingsTest, ContainersRollAtTheirSize) {
  Scratch scratch;
  EXPECT_EQ(containers_of(scratch, {"--rtc-roll-bytes", "0"}, 8, scratch / "one"), 1u);
  EXPECT_GT(containers_of(scratch, {"--rtc-roll-bytes", "8192"}, 8, scratch / "many"), 1u);
  EXPECT_EQ(containers_of(scratch, {"--rtc", "false"}, 8, scratch / "none"), 0u);
}

TEST(SettingsTest, ContainersRollAtTheirAge) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--rtc-roll-s", "1", "--rtc-roll-bytes", "0"});
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  uint64_t number = 0;
  EXPECT_TRUE(eventually(seconds(60), [&] {
    if (number < 4'000 && !agent.data.send(page_bytes(1, number, events(1'000 + number, 1)))) {
      return false;
    }
    number += number < 4'000 ? 1 : 0;
    const auto directories = session_directories(collector.root(), static_cast<int>(kPid));
    return !directories.empty() && std::filesystem::exists(directories[0] + "/capture-000002.rtc");
  }));
}

uint64_t features(const CollectorProcess& collector) {
  RawConnection connection(collector.ingest_port());
  const auto answer = introduce(
      connection, hello(wire::CHANNEL_CONTROL, kPid, std::string("settings_test_1x")), {});
  wire::Welcome welcome;
  EXPECT_TRUE(answer && answer->type == wire::FrameType::kWelcome &&
              welcome.ParseFromString(answer->body));
  return welcome.features();
}

TEST(SettingsTest, PageCodecsAreAgreedUnlessTheyAreOff) {
  Scratch scratch;
  EXPECT_NE(features(CollectorProcess(scratch)) & wire::kFeatureColumns, 0u);
  EXPECT_EQ(features(CollectorProcess(scratch, {"--page-codecs", "off"})) & wire::kFeatureColumns,
            0u);
}

TEST(SettingsTest, ProcessBeginsNoMoreRecordingsThanItMay) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--sessions-per-agent", "1"});
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  end_recording(agent, 0);
  wire::RecordingStart again;
  again.set_recording(2);
  again.set_start_ns(2);
  again.set_atf_version(2);
  (void)agent.data.send(wire::FrameType::kRecordingStart, again);
  const auto refusal = agent.control.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), wire::REFUSE_LIMIT);
  EXPECT_THAT(refusal->reason(), HasSubstr("more than 1 recordings"));
}

TEST(SettingsTest, AgentHasNoMoreThreadsThanItMay) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--threads-per-agent", "2"});
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  for (uint32_t stream = 2; stream <= 3; ++stream) {
    wire::StreamOpen open;
    open.set_recording(1);
    open.set_stream_id(stream);
    open.set_thread_id(kPid + stream);
    open.set_start_ns(1);
    (void)agent.data.send(wire::FrameType::kStreamOpen, open);
  }
  const auto refusal = agent.control.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason(), HasSubstr("more than 2 threads at once (threads_per_agent)"));
}

TEST(SettingsTest, ConnectionsHaveTheirLimit) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--max-connections", "4"});
  RawAgent first(collector.ingest_port(), kPid);
  RawAgent second(collector.ingest_port(), kPid + 1);
  EXPECT_TRUE(first.ready && second.ready);
  RawAgent third(collector.ingest_port(), kPid + 2);
  EXPECT_FALSE(third.ready);
}

// The agent receives the interval, and a session waits as long as is set.
TEST(SettingsTest, HeartbeatsAndResumingHaveTheirTime) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "1234", "--resume-ms", "300"});
  RawConnection connection(collector.ingest_port());
  const auto answer = introduce(
      connection, hello(wire::CHANNEL_CONTROL, kPid + 1, std::string("settings_test_2x")));
  wire::Welcome welcome;
  ASSERT_TRUE(answer && welcome.ParseFromString(answer->body));
  EXPECT_EQ(welcome.heartbeat_ms(), 1234u);
  {
    RawAgent agent(collector.ingest_port(), kPid);
    ASSERT_TRUE(agent.ready && agent.data.send(page(0)));
    EXPECT_TRUE(agent.control.receive_ack(1, kPageEvents));
  }
  // Without the setting it would wait for a minute.
  EXPECT_TRUE(eventually(seconds(30), [&] {
    const auto directories = session_directories(collector.root(), static_cast<int>(kPid));
    return !directories.empty() && RecordedSession(directories[0]).state() == "recovered";
  }));
}

// What an agent is refused that records with these settings; empty: it is not.
std::string refusal_with(const Scratch& scratch, const Arguments& settings, uint64_t pages,
                         uint32_t threads) {
  static int count = 0;
  Arguments patient = settings;
  patient.insert(patient.end(), {"--heartbeat-ms", "60000"});  // the agent answers none
  CollectorProcess collector(scratch, patient, scratch / ("refusal_" + std::to_string(++count)));
  RawAgent agent(collector.ingest_port(), kPid);
  bool goes_on = agent.ready;
  for (uint64_t i = 0; goes_on && i < pages; ++i) goes_on = agent.data.send(page(i));
  for (uint32_t at = 2; goes_on && at < threads; ++at) goes_on = open_stream(agent.data, 1, at);
  const auto refusal = agent.control.refusal();
  return refusal ? refusal->reason() : "";
}

TEST(SettingsTest, DisksAndSessionsHaveTheirLimits) {
  Scratch scratch;
  EXPECT_THAT(refusal_with(scratch, {"--max-session-bytes", "1000000"}, 100, 0),
              HasSubstr("max_session_bytes"));
  EXPECT_THAT(refusal_with(scratch, {"--keep-free-bytes", "4611686018427387904"}, 1, 0),
              HasSubstr("keep_free_bytes"));
  EXPECT_THAT(refusal_with(scratch, {"--keep-free-files", "4611686018427387904"}, 1, 0),
              HasSubstr("keep_free_files"));
}

TEST(SettingsTest, FilesAndMemoryOfAllAgentsHaveTheirLimits) {
  Scratch scratch;
  EXPECT_THAT(refusal_with(scratch, {"--max-unsealed-files", "256"}, 0, 10'000),
              HasSubstr("(max_unsealed_files)"));
  EXPECT_THAT(refusal_with(scratch, {"--max-memory-bytes", "4194304"}, 0, 10'000),
              HasSubstr("(max_memory_bytes)"));
}

TEST(SettingsTest, SessionsOfAllAgentsHaveTheirLimit) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--max-unsealed-sessions", "4"});
  std::vector<std::unique_ptr<RawAgent>> agents;
  for (uint32_t at = 0; at < 4; ++at) {
    agents.push_back(std::make_unique<RawAgent>(collector.ingest_port(), kPid + at));
    ASSERT_TRUE(agents.back()->ready && agents.back()->data.send(page(0)));
    EXPECT_TRUE(agents.back()->control.receive_ack(1, kPageEvents)) << at;
  }
  RawAgent beyond(collector.ingest_port(), kPid + 4);
  const auto refusal = beyond.control.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->reason(), HasSubstr("(max_unsealed_sessions)"));
}

TEST(SettingsTest, OldestContainersGoBeyondTheirBudget) {
  Scratch scratch;
  const Arguments rolls = {"--rtc-roll-bytes", "8192"};
  const size_t all = containers_of(scratch, rolls, 16, scratch / "all");
  Arguments bounded = rolls;
  bounded.insert(bounded.end(), {"--rtc-budget-bytes", "30000"});
  const size_t kept = containers_of(scratch, bounded, 16, scratch / "bounded");
  EXPECT_LT(kept, all);
  EXPECT_FALSE(std::filesystem::exists(
      session_directories(scratch / "bounded", static_cast<int>(kPid)).at(0) +
      "/capture-000001.rtc"));
}

// Loopback has no such limit: these come from another address, in a network made for the test.
TEST(SettingsTest, ConnectionsOfOneAddressHaveTheirLimit) {
  const fakes::OwnNetwork network;
  if (!network.fault().empty()) GTEST_SKIP() << network.fault();
  Scratch scratch;
  CollectorProcess collector(scratch, {"--max-connections-per-address", "2"});
  const auto is_welcomed = [](RawConnection& connection, uint32_t pid) {
    const std::string id = "settings_test_" + std::to_string(pid).substr(5);
    const auto answer = introduce(connection, hello(wire::CHANNEL_CONTROL, pid, id));
    return answer && answer->type == wire::FrameType::kWelcome;
  };
  const auto connect = [&] { return RawConnection(collector.ingest_port(), fakes::kOwnAddress); };
  RawConnection first = connect();
  RawConnection second = connect();
  EXPECT_TRUE(is_welcomed(first, kPid));
  EXPECT_TRUE(is_welcomed(second, kPid + 1));
  const auto refusal = connect().refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), wire::REFUSE_LIMIT);
  EXPECT_THAT(refusal->reason(),
              HasSubstr("more than 2 connections of one address (max_connections_per_address)"));
  const RawAgent local(collector.ingest_port(), kPid + 2);
  EXPECT_TRUE(local.ready);
  first.close();
  EXPECT_TRUE(eventually(seconds(30), [&] {
    RawConnection again = connect();
    return is_welcomed(again, kPid + 3);
  })) << "there is room again";
}

// What a session is called "done" with: one call of a function of a file.
nlohmann::json named_manifest(const Scratch& scratch, const Arguments& settings,
                              const std::string& path, const std::string& root) {
  CollectorProcess collector(scratch, settings, root);
  RawAgent agent(collector.ingest_port(), kPid);
  EXPECT_TRUE(agent.ready);
  wire::Modules modules;
  wire::Module* const module = modules.add_modules();
  const symbolize::test::ElfFile file;
  module->set_path(path);
  module->set_loaded_ns(900);
  module->set_build_id(file.build_id.data(), file.build_id.size());
  EXPECT_TRUE(agent.data.send(wire::FrameType::kModules, modules));
  Octets records = events(1'000, 2);
  for (size_t at = 8; at < records.size(); at += atf::kEventBytes) {
    store_le(records.data() + at, uint64_t{kAddress});
  }
  EXPECT_TRUE(agent.data.send(page_bytes(1, 0, records)));
  end_recording(agent, 2);
  const auto is_done = [&] {
    const auto sessions = session_directories(collector.root(), static_cast<int>(kPid));
    if (sessions.empty()) return false;
    const RecordedSession session(sessions[0]);
    return session.state() == "complete" &&
           session.manifest().value("symbols_state", "done") == "done";
  };
  EXPECT_TRUE(eventually(seconds(60), is_done));
  const auto sessions = session_directories(collector.root(), static_cast<int>(kPid));
  return sessions.empty() ? nlohmann::json() : RecordedSession(sessions[0]).manifest();
}

TEST(SettingsTest, NamesComeFromWhereTheSettingsSay) {
  Scratch scratch;
  symbolize::test::ElfFile file;
  file.symbols = {{kAddress, "_ZN7witness4workEv"}};
  const std::vector<uint8_t> bytes = file.bytes();
  const std::string symbols = scratch / "symbols";
  std::filesystem::create_directories(symbols);
  const std::string path = symbols + "/app";
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  const auto names = [](const nlohmann::json& manifest) {
    return manifest.value("symbols", nlohmann::json::array()).size();
  };
  const auto usual = named_manifest(scratch, {}, path, scratch / "usual");
  EXPECT_EQ(names(usual), 1u);
  EXPECT_EQ(usual["modules"][0]["loaded_ns"], 900);
  EXPECT_EQ(usual["process"]["parent_pid"], kRawParentPid);
  EXPECT_EQ(usual["process"]["agent_version"], kRawAgentVersion);
  EXPECT_EQ(names(named_manifest(scratch, {"--symbol-roots", "/usr"}, path, scratch / "roots")),
            0u);
  EXPECT_EQ(names(named_manifest(scratch, {}, "/nowhere/app", scratch / "nowhere")), 0u);
  EXPECT_EQ(names(named_manifest(scratch, {"--symbol-directories", symbols}, "/nowhere/app",
                                 scratch / "directories")),
            1u);
  const auto unnamed = named_manifest(scratch, {"--symbolize", "false"}, path, scratch / "off");
  EXPECT_EQ(names(unnamed), 0u);
  EXPECT_FALSE(unnamed.contains("symbols_state"));
}

// The library is loaded before libc and writes a byte for each sync of file data.
size_t syncs(const Scratch& scratch, const std::string& durability) {
  const std::string counted = scratch / ("syncs_" + durability);
  CollectorProcess collector(
      scratch, {"--durability", durability}, scratch / durability,
      {"env", std::string("LD_PRELOAD=") + COUNT_SYNCS_LIBRARY, "COUNT_SYNCS_FILE=" + counted});
  RawAgent agent(collector.ingest_port(), kPid);
  EXPECT_TRUE(agent.ready);
  // Each page is acknowledged before the next one: an ack is what durability is about.
  constexpr uint64_t kPages = 20;
  for (uint64_t i = 0; i < kPages; ++i) {
    EXPECT_TRUE(agent.data.send(page(i)));
    EXPECT_TRUE(agent.control.receive_ack(1, (i + 1) * kPageEvents));
  }
  return read_text_file(counted).size();
}

TEST(SettingsTest, DurabilityFsyncSyncsBeforeEachAck) {
  Scratch scratch;
  const size_t of_os = syncs(scratch, "os");
  const size_t of_fsync = syncs(scratch, "fsync");
  EXPECT_GE(of_fsync, of_os + 20) << of_os;
}

TEST(SettingsTest, HangupReloadsTheLogLevel) {
  Scratch scratch;
  const std::string config = scratch / "collectord.toml";
  write_text_file(config, "log_level = \"error\"\n");
  CollectorProcess collector(scratch, {"--config", config});
  EXPECT_EQ(collector.process().errors(), "");
  write_text_file(config, "log_level = \"info\"\n");
  collector.process().send_signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.process().errors().find("reloaded tokens, certificates and log level") !=
           std::string::npos;
  }));
}

TEST(SettingsTest, FlagWinsOverTheFileAfterAHangupToo) {
  Scratch scratch;
  const std::string config = scratch / "collectord.toml";
  write_text_file(config, "log_level = \"error\"\n");
  CollectorProcess collector(scratch, {"--config", config, "--log-level", "info"});
  collector.process().send_signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.process().errors().find("reloaded tokens, certificates and log level") !=
           std::string::npos;
  }));
}

TEST(SettingsTest, UnknownVariablesAreWarnedOf) {
  Scratch scratch;
  CollectorProcess collector(scratch, {}, "", {"env", "COLLECT_TOKENFILE=x"});
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.process().errors().find(
               "unknown variable COLLECT_TOKENFILE; did you mean COLLECT_TOKEN_FILE?") !=
           std::string::npos;
  })) << collector.process().errors();
}

// What systemd waits for.
TEST(SettingsTest, NotifiesReadyAndStopping) {
  Scratch scratch;
  // A socket's path is short.
  const std::string path =
      std::filesystem::temp_directory_path() / ("notify_" + std::to_string(::getpid()));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof address.sun_path);
  path.copy(address.sun_path, path.size());
  const int listener = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval limit{30, 0};
  ::setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  const auto notified = [listener] {
    char text[256];
    const ssize_t got = ::recv(listener, text, sizeof text, 0);
    return std::string(text, got > 0 ? static_cast<size_t>(got) : 0);
  };
  {
    CollectorProcess collector(scratch, {}, "", {"env", "NOTIFY_SOCKET=" + path});
    EXPECT_EQ(notified(), "READY=1");
    EXPECT_TRUE(collector.stop().exited_with(0));
    EXPECT_EQ(notified(), "STOPPING=1");
  }
  ::close(listener);
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace collect::e2e
