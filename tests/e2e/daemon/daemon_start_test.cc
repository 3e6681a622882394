// How collectord starts and ends: what it says when it is ready, what it refuses, which signals end
// it, and what it leaves behind.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/phones/fake_adb_server.h"

namespace collect::e2e {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint32_t kPid = 4'700'000;  // above the largest that Linux gives out

std::string ready_line(const CollectorProcess& collector) {
  return "{\"control\":\"" + collector.control() + "\",\"ingest\":\"" + collector.ingest() +
         "\",\"root\":\"" + collector.root() + "\"}\n";
}

bool has_logged(CollectorProcess& collector, const std::string& words) {
  return eventually(seconds(30),
                    [&] { return collector.process().errors().find(words) != std::string::npos; });
}

// The line of a daemon that does not start.
std::string refusal(const Scratch& scratch, const Arguments& flags) {
  Arguments command = {program("collectord")};
  command.insert(command.end(), flags.begin(), flags.end());
  const Ending ending = run(scratch.path(), command);
  EXPECT_TRUE(ending.exited_with(2)) << ending.describe();
  EXPECT_EQ(std::count(ending.errors.begin(), ending.errors.end(), '\n'), 1) << ending.errors;
  EXPECT_EQ(ending.output, "");
  return ending.errors;
}

TEST(DaemonStartTest, ReadyLineSaysWhereEverythingIs) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--ready-fd", "1"});
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.process().output() == ready_line(collector);
  })) << collector.process().output();
  EXPECT_TRUE(has_logged(collector, "collectord 0.1.0 is ready: agents at " + collector.ingest() +
                                        ", control at " + collector.control() +
                                        ", sessions below " + collector.root()));
}

TEST(DaemonStartTest, ReadyDescriptorEndsBehindTheLine) {
  Scratch scratch;
  const std::string fifo = scratch / "ready";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const int reader = ::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  CollectorProcess collector(scratch, {"--ready-fd", "7"}, "",
                             {"sh", "-c", "exec \"$@\" 7>\"$0\"", fifo});
  std::string text;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    char part[512];
    const ssize_t got = ::read(reader, part, sizeof part);
    if (got > 0) text.append(part, static_cast<size_t>(got));
    return got == 0 && !text.empty();
  }));
  EXPECT_EQ(text, ready_line(collector));
  ::close(reader);
}

TEST(DaemonStartTest, StartsWithABadReadyDescriptor) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--ready-fd", "99"});
  EXPECT_TRUE(has_logged(collector, "--ready-fd 99: Bad file descriptor"));
  EXPECT_TRUE(has_logged(collector, "is ready"));
  EXPECT_TRUE(collector.ctl({"collectors"}).exited_with(0));
}

TEST(DaemonStartTest, RootIsMadeAbsoluteAndServesOneDaemon) {
  Scratch scratch;
  const std::string root = scratch / "traces";
  std::filesystem::create_directories(root);
  CollectorProcess collector(scratch, {"--ready-fd", "1"}, root + "/../traces/./");
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector.process().output().find("\"root\":\"" + root) != std::string::npos;
  })) << collector.process().output();
  EXPECT_THAT(collector.process().output(), ::testing::Not(HasSubstr("..")));
  const Arguments second = {"--root",    root,
                            "--ingest",  "127.0.0.1:" + std::to_string(free_port()),
                            "--control", "127.0.0.1:" + std::to_string(free_port()),
                            "--adb",     "off",
                            "--usbmux",  "off"};
  EXPECT_THAT(refusal(scratch, second), HasSubstr("is in use by another collectord\n"));
}

TEST(DaemonStartTest, ExplainsStartFailuresInOneLine) {
  Scratch scratch;
  const std::string here = "127.0.0.1:" + std::to_string(free_port());
  EXPECT_THAT(refusal(scratch, {"--no-such-flag"}), StartsWith("collectord: "));
  EXPECT_THAT(refusal(scratch, {"--root", "/proc/none", "--ingest", here, "--control", here}),
              StartsWith("collectord: "));
  CollectorProcess collector(scratch);
  const auto flags = [&](const std::string& ingest, const std::string& control) {
    return Arguments{"--root", scratch / "other", "--ingest", ingest,     "--control",
                     control,  "--adb",           "off",      "--usbmux", "off"};
  };
  EXPECT_THAT(refusal(scratch, flags(collector.ingest(), here)), HasSubstr(collector.ingest()));
  EXPECT_THAT(refusal(scratch, flags(here, collector.control())), HasSubstr(collector.control()));
}

TEST(DaemonStartTest, PrintingOptionsDoNotStartTheDaemon) {
  Scratch scratch;
  const auto printed = [&](const Arguments& flags) {
    Arguments command = {program("collectord")};
    command.insert(command.end(), flags.begin(), flags.end());
    const Ending ending = run(scratch.path(), command);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
    EXPECT_EQ(ending.errors, "");
    return ending.output;
  };
  EXPECT_EQ(printed({"--version"}), "collectord 0.1.0\n");
  EXPECT_THAT(printed({"--help"}), HasSubstr("--print-config"));
  EXPECT_THAT(printed({"--print-config", "--root", "/r"}), HasSubstr("root = '/r'"));
}

TEST(DaemonStartTest, TwoSignalsEndIt) {
  for (const int number : {SIGINT, SIGTERM}) {
    Scratch scratch;
    CollectorProcess collector(scratch);
    ASSERT_TRUE(has_logged(collector, "is ready"));
    collector.process().send_signal(number);
    EXPECT_TRUE(collector.process().wait(seconds(30)).exited_with(0));
    EXPECT_THAT(
        collector.process().errors(),
        HasSubstr(number == SIGINT ? "received SIGINT, stopping" : "received SIGTERM, stopping"));
  }
}

// A mask of one of the threads that wait for no signal.
uint64_t mask_of(pid_t pid, const std::string& name) {
  const std::string process = std::to_string(pid);
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + process + "/task")) {
    if (task.path().filename() == process) continue;
    std::ifstream file(task.path() / "status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(name)) return std::stoull(line.substr(name.size()), nullptr, 16);
    }
  }
  return 0;
}

TEST(DaemonStartTest, WriteThatFailsIsNoSignal) {
  Scratch scratch;
  CollectorProcess collector(scratch);
  ASSERT_TRUE(has_logged(collector, "is ready"));
  const uint64_t ignored = mask_of(collector.process().pid(), "SigIgn:");
  const uint64_t blocked = mask_of(collector.process().pid(), "SigBlk:");
  for (const int number : {SIGPIPE, SIGXFSZ}) EXPECT_NE(ignored >> (number - 1) & 1, 0u) << number;
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
    EXPECT_NE(blocked >> (number - 1) & 1, 0u) << number;
  }
}

TEST(DaemonStartTest, RaisesTheOpenFileLimitToTheMaximum) {
  Scratch scratch;
  CollectorProcess collector(scratch, {}, "", {"prlimit", "--nofile=400:4321"});
  std::ifstream file("/proc/" + std::to_string(collector.process().pid()) + "/limits");
  std::string limits;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Max open files")) limits = line;
  }
  EXPECT_THAT(limits, ::testing::MatchesRegex("Max open files +4321 +4321 .*"));
  EXPECT_THAT(collector.process().errors(), ::testing::Not(HasSubstr("limit of open files")));
}

TEST(DaemonStartTest, AddressesAndPlacesOfTheSettingsAreDialled) {
  Scratch scratch;
  fakes::FakeAdbServer adb;
  adb.start();
  adb.plug("A", fakes::FakePhone{});
  fakes::ListeningSocket listener;
  CollectorProcess collector(
      scratch, {"--adb", adb.address(), "--attach", listener.address(), "adb:A:own_name"});
  fakes::FrameSocket dialled = listener.accept();
  EXPECT_TRUE(dialled.receive_type(wire::FrameType::kDial).has_value());
  EXPECT_TRUE(eventually(seconds(30), [&] { return adb.requests("localabstract:own_name") > 0; }));
  const std::string agents = collector.ctl({"agents"}).output;
  EXPECT_THAT(agents, HasSubstr(listener.address()));
  EXPECT_THAT(agents, ::testing::Not(HasSubstr("own_name"))) << "it is shown with its device";
  EXPECT_THAT(collector.ctl({"devices"}).output, HasSubstr("own_name"));
}

// What a session is that its agent did not end, when the daemon has stopped.
std::string state_after_stop(const Arguments& settings) {
  Scratch scratch;
  CollectorProcess collector(scratch, settings);
  RawAgent agent(collector.ingest_port(), kPid);
  EXPECT_TRUE(agent.ready && agent.data.send(page_bytes(1, 0, events(1'000, 2))));
  EXPECT_TRUE(agent.control.receive_ack(1, 2));
  EXPECT_TRUE(collector.stop().exited_with(0));
  EXPECT_THAT(collector.process().errors(), ::testing::Not(HasSubstr("in time")));
  const auto directories = session_directories(collector.root(), static_cast<int>(kPid));
  return directories.empty() ? "none" : RecordedSession(directories[0]).state();
}

TEST(DaemonStartTest, SealsSessionsAtStopOnlyOnRequest) {
  EXPECT_EQ(state_after_stop({}), "recording");
  EXPECT_EQ(state_after_stop({"--seal-at-stop", "true"}), "recovered");
}

TEST(DaemonStartTest, AgentsNeedTheTokenThatTheFileHasNow) {
  Scratch scratch;
  const std::string file = scratch / "token";
  write_text_file(file, "first\n");
  CollectorProcess collector(scratch, {"--token-file", file});
  const auto is_welcome = [&](const std::string& token, uint32_t number) {
    RawConnection connection(collector.ingest_port());
    fakes::Secrets secrets{token, {}};
    return be_welcomed(
        connection,
        hello(wire::CHANNEL_CONTROL, kPid + number, "daemon_start_" + std::to_string(100 + number)),
        secrets);
  };
  EXPECT_TRUE(is_welcome("first", 1));
  EXPECT_FALSE(is_welcome("second", 2));
  write_text_file(file, "second\n");
  collector.process().send_signal(SIGHUP);
  ASSERT_TRUE(has_logged(collector, "reloaded tokens, certificates and log level"));
  EXPECT_FALSE(is_welcome("first", 3));
  EXPECT_TRUE(is_welcome("second", 4));
}

TEST(DaemonStartTest, HangupWithABrokenFileChangesNothing) {
  Scratch scratch;
  const std::string config = scratch / "collectord.toml";
  write_text_file(config, "log_level = \"info\"\n");
  CollectorProcess collector(scratch, {"--config", config});
  write_text_file(config, "log_level = \"loud\"\n");
  collector.process().send_signal(SIGHUP);
  EXPECT_TRUE(has_logged(collector, "error reload: " + config + ":1:13: log_level: \"loud\" is " +
                                        "not one of trace, debug, info, warn, error, off; nothing "
                                        "was changed"));
  EXPECT_TRUE(collector.ctl({"collectors"}).exited_with(0));
}

}  // namespace
}  // namespace collect::e2e
