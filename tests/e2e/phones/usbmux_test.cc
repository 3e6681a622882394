// iPhones: the client against the real usbmuxd, and Debian's iproxy in front of a usbmuxd of ours
// whose device is a real traced program.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "daemon/attach/usbmux/usbmux_opens.h"
#include "daemon/attach/usbmux/usbmux_source.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/frame_socket.h"
#include "tests/fakes/phones/fake_usbmuxd.h"

namespace collect::e2e {
namespace {

constexpr size_t kThreads = 2;
constexpr uint16_t kDevicePort = 7720;
const char* const kUsbmuxd = "/usr/sbin/usbmuxd";
const char* const kIproxy = "/usr/bin/iproxy";
const std::string kPhone = "00008110-001A2B3C4D5E801E";

bool eventually_with(asio::io_context& io, const std::function<bool()>& holds) {
  return eventually(seconds(30), [&] {
    io.restart();
    io.poll();
    return holds();
  });
}

// In namespaces of its own, where /run is empty: its socket has no other place. Without devices it
// still tells what it thinks of every request.
TEST(RealUsbmuxd, ListensAndRefusesLikeOurs) {
  if (access(kUsbmuxd, X_OK) != 0) GTEST_SKIP() << "no " << kUsbmuxd << ": package usbmuxd";
  Scratch scratch;
  auto usbmuxd = std::make_unique<ChildProcess>(
      scratch.path(),
      Arguments{"/usr/bin/unshare", "--map-root-user", "--mount", "/bin/sh", "-c",
                "mount -t tmpfs none /run && mount -t tmpfs none /var/lib && exec " +
                    std::string(kUsbmuxd) + " -f -n"});
  const std::string path =
      std::filesystem::path("/proc") / std::to_string(usbmuxd->pid()) / "root" / "run" / "usbmuxd";
  std::error_code none;
  eventually(seconds(20),
             [&] { return std::filesystem::exists(path, none) || !usbmuxd->running(); });
  if (!usbmuxd->running()) {
    GTEST_SKIP() << "usbmuxd can't have namespaces of its own here: " << usbmuxd->errors();
  }
  asio::io_context io;
  const auto address = attach::parse_usbmux_address("UNIX:" + path);
  ASSERT_TRUE(address.ok());
  attach::UsbmuxSource source(io, *address);
  std::vector<attach::ServerState> states;
  size_t lists = 0;
  source.start([&](const attach::ServerState& state) { states.push_back(state); },
               [&](const std::vector<attach::SourceDevice>&) { ++lists; });
  ASSERT_TRUE(eventually_with(io, [&] { return !states.empty(); }));
  EXPECT_TRUE(states[0].connected) << states[0].status;
  EXPECT_EQ(lists, 0u);
  // A device that is not there is its result 2.
  const auto opens = std::make_shared<attach::UsbmuxOpens>(io, *address);
  std::optional<Result<attach::Socket>> opened;
  opens->open(kPhone, {4711}, kDevicePort,
              [&](Result<attach::Socket> socket) { opened = std::move(socket); });
  ASSERT_TRUE(eventually_with(io, [&] { return opened.has_value(); }));
  ASSERT_FALSE(opened->ok());
  EXPECT_EQ(to_string(opened->error()), to_string(attach::usbmux_connect_error(2, kPhone, 0)));
  usbmuxd->send_signal(SIGTERM);
  ASSERT_TRUE(eventually_with(io, [&] { return !states.back().connected; }));
  EXPECT_FALSE(states.back().status.empty());
  usbmuxd->wait(seconds(10));
  source.stop();
  io.restart();
  io.poll();
}

class Phone : public testing::Test {
 protected:
  Phone() : usbmuxd_(scratch_ / "usbmuxd") { usbmuxd_.map_port(kPhone, kDevicePort, agent_port_); }

  // The app on the phone: it listens, and runs until it is asked to end.
  void start_app() {
    app_ = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{traced_program("chaos"), scratch_ / "progress", std::to_string(kThreads)},
        Environment{{"LD_PRELOAD", agent_library()},
                    {"COLLECT_LISTEN", "tcp:" + std::to_string(agent_port_)},
                    {"COLLECT_FULL", "wait"},
                    {"COLLECT_LOG", "1"},
                    {"COLLECT_EXIT_FLUSH_MS", "60000"}});
  }
  uint64_t stored(const CollectorProcess& collector) const {
    uint64_t bytes = 0;
    std::error_code none;
    for (const std::string& directory : session_directories(collector.root(), app_->pid())) {
      for (size_t thread = 0; thread < kThreads; ++thread) {
        const auto size = std::filesystem::file_size(
            directory + "/thread_" + std::to_string(thread) + "/index.atf", none);
        if (!none) bytes += size;
      }
    }
    return bytes;
  }
  // Both channels are up, and something new is stored.
  bool records(const CollectorProcess& collector) const {
    if (!eventually(seconds(60), [&] { return usbmuxd_.streams() == 2; })) return false;
    const uint64_t before = stored(collector);
    return eventually(seconds(60), [&] { return stored(collector) > before; });
  }
  void expect_one_whole_session(const CollectorProcess& collector) {
    app_->send_signal(SIGTERM);
    ASSERT_TRUE(app_->wait(seconds(90)).exited_with(0));
    const ChaosTally tally = check_chaos_process(collector.root(), app_->pid(),
                                                 read_progress(scratch_ / "progress", kThreads),
                                                 ChaosEnd::kOrderly, true);
    EXPECT_EQ(tally.sessions, 1u);
    EXPECT_EQ(tally.lost, 0u);
    EXPECT_GT(tally.events, 0u);
    const auto directories = session_directories(collector.root(), app_->pid());
    ASSERT_EQ(directories.size(), 1u);
    EXPECT_EQ(RecordedSession(directories[0]).state(), "complete");
    const Ending verified = run(scratch_.path(), {program("collectctl"), "verify", directories[0]});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  }

  Scratch scratch_;
  uint16_t agent_port_ = free_port();
  fakes::FakeUsbmuxd usbmuxd_;
  std::unique_ptr<ChildProcess> app_;
};

// The search connects to every port and lets go at once: an agent that is served by a collector
// already takes no notice.
TEST_F(Phone, SearchFindsTheAgentAndDisturbsNothing) {
  usbmuxd_.attach(kPhone);
  CollectorProcess collector(scratch_, {"--heartbeat-ms", "100"});
  start_app();
  asio::io_context io;
  attach::UsbmuxSource source(io, *attach::parse_usbmux_address(usbmuxd_.address()));
  size_t devices = 0;
  source.start([](const attach::ServerState&) {},
               [&](const std::vector<attach::SourceDevice>& list) { devices = list.size(); });
  ASSERT_TRUE(eventually_with(io, [&] { return devices == 1; }));
  using Agents = Result<std::vector<std::string>>;
  const auto search = [&] {
    std::optional<Agents> found;
    source.find_agents(kPhone, [&](Agents agents) { found = std::move(agents); });
    EXPECT_TRUE(eventually_with(io, [&] { return found.has_value(); }));
    return found && found->ok() ? **found : std::vector<std::string>{};
  };
  const std::vector<std::string> expected{"tcp:" + std::to_string(kDevicePort)};
  ASSERT_TRUE(eventually(seconds(30), [&] { return search() == expected; }));
  // What is opened speaks the agent protocol.
  std::optional<Result<attach::Socket>> opened;
  source.open(kPhone, expected[0], [&](Result<attach::Socket> r) { opened = std::move(r); });
  ASSERT_TRUE(eventually_with(io, [&] { return opened.has_value(); }));
  ASSERT_TRUE(opened->ok());
  fakes::FrameSocket channel((*opened)->release());
  wire::Dial dial;
  dial.set_channel(wire::CHANNEL_CONTROL);
  dial.set_min_version(wire::kProtocolVersion);
  dial.set_max_version(wire::kProtocolVersion);
  ASSERT_TRUE(channel.send(wire::FrameType::kDial, dial));
  const auto hello = channel.receive_type(wire::FrameType::kHello);
  ASSERT_TRUE(hello.has_value());
  EXPECT_EQ(hello->parsed<wire::Hello>().pid(), static_cast<uint32_t>(app_->pid()));
  channel.close();
  ASSERT_TRUE(collector.ctl({"attach", "127.0.0.1:" + std::to_string(agent_port_)}).exited_with(0));
  ASSERT_TRUE(eventually(seconds(60), [&] { return stored(collector) > 0; }));
  for (int times = 0; times < 20; ++times) EXPECT_EQ(search(), expected);
  source.stop();
  io.restart();
  io.poll();
  expect_one_whole_session(collector);
  const std::string log = app_->errors();
  const size_t once = log.find("connected to");
  EXPECT_NE(once, std::string::npos) << log;
  EXPECT_EQ(log.find("connected to", once + 1), std::string::npos) << "the link broke:\n" << log;
}

// The collector finds the phone by itself.
TEST_F(Phone, RecordsOncePluggedInAndSurvivesUnplugging) {
  const std::string path = scratch_ / "usbmuxd";
  usbmuxd_.stop();
  CollectorProcess collector(scratch_, {"--usbmux", "UNIX:" + path, "--heartbeat-ms", "500"});
  const auto shown = [&](const std::string& wanted) {
    std::string last;
    const bool is_shown = eventually(seconds(60), [&] {
      last = collector.ctl({"devices"}).output;
      return last.find(wanted) != std::string::npos;
    });
    return is_shown ? "" : "\"" + wanted + "\" is not in:\n" + last;
  };
  EXPECT_EQ(shown("no usbmuxd at unix:" + path), "");
  usbmuxd_.start();
  uint32_t id = usbmuxd_.attach(kPhone);
  EXPECT_EQ(shown(kPhone), "");
  EXPECT_EQ(shown("no agent"), "");
  EXPECT_EQ(shown("COLLECT_LISTEN=tcp:7720-7729"), "");
  start_app();
  EXPECT_EQ(shown("serving"), "");
  ASSERT_TRUE(records(collector));
  for (int times = 0; times < 3; ++times) {
    usbmuxd_.detach(id);
    EXPECT_EQ(shown("absent"), "");
    id = usbmuxd_.attach(kPhone);
    EXPECT_EQ(shown("serving"), "");
    ASSERT_TRUE(records(collector)) << "after a replug";
  }
  usbmuxd_.stop();
  EXPECT_EQ(shown("no usbmuxd"), "");
  usbmuxd_.start();
  ASSERT_TRUE(records(collector)) << "after usbmuxd was started again";
  expect_one_whole_session(collector);
  EXPECT_EQ(shown("no agent"), "") << "the app is over";
}

// Two phones with an app each, and the same phone over the network too.
TEST_F(Phone, SeveralAtOnce) {
  const std::string other = "00008030-000A11112222802E";
  const uint16_t other_port = free_port();
  usbmuxd_.map_port(other, kDevicePort + 3, other_port);
  const uint32_t network = usbmuxd_.attach(kPhone, "Network");
  usbmuxd_.attach(kPhone, "USB");
  usbmuxd_.attach(other);
  CollectorProcess collector(scratch_, {"--usbmux", usbmuxd_.address(), "--heartbeat-ms", "500"});
  start_app();
  ChildProcess second(scratch_.path(), {traced_program("json_iso_codes_counted"), "1", "2", "300"},
                      {{"LD_PRELOAD", agent_library()},
                       {"COLLECT_LISTEN", "tcp:" + std::to_string(other_port)},
                       {"COLLECT_FULL", "wait"},
                       {"COUNT_FILE", scratch_ / "count"},
                       {"COLLECT_EXIT_FLUSH_MS", "60000"}});
  ASSERT_TRUE(second.wait(seconds(120)).exited_with(0)) << second.errors();
  const auto sessions = sealed_sessions(collector.root(), second.pid());
  ASSERT_EQ(sessions.size(), 1u);
  expect_exactly(sessions[0], read_count(scratch_ / "count", second.pid()));
  usbmuxd_.detach(network);
  ASSERT_TRUE(eventually(seconds(60), [&] { return stored(collector) > 0; }));
  const uint64_t before = stored(collector);
  EXPECT_TRUE(eventually(seconds(60), [&] { return stored(collector) > before; }));
  expect_one_whole_session(collector);
}

// A user who forwards by hand: iproxy, and attach.
TEST_F(Phone, BehindIproxyThatIsStartedAgain) {
  if (access(kIproxy, X_OK) != 0) GTEST_SKIP() << "no " << kIproxy << ": package libusbmuxd-tools";
  const uint16_t local = free_port();
  const auto iproxy = [&] {
    return std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{kIproxy, "-u", kPhone, std::to_string(local) + ":" + std::to_string(kDevicePort)},
        Environment{{"USBMUXD_SOCKET_ADDRESS", usbmuxd_.address()}});
  };
  const uint32_t id = usbmuxd_.attach(kPhone);
  auto proxy = iproxy();
  CollectorProcess collector(scratch_, {"--heartbeat-ms", "100"});
  const Ending attached = collector.ctl({"attach", "127.0.0.1:" + std::to_string(local)});
  ASSERT_TRUE(attached.exited_with(0)) << attached.errors;
  start_app();
  ASSERT_TRUE(records(collector));
  proxy->send_signal(SIGKILL);
  proxy->wait(seconds(10));
  ASSERT_TRUE(eventually(seconds(10), [&] { return usbmuxd_.streams() == 0; }));
  proxy = iproxy();
  ASSERT_TRUE(records(collector)) << "after iproxy was started again";
  usbmuxd_.detach(id);
  usbmuxd_.attach(kPhone);
  ASSERT_TRUE(records(collector)) << "after a replug";
  expect_one_whole_session(collector);
  proxy->send_signal(SIGTERM);
  proxy->wait(seconds(10));
}

}  // namespace
}  // namespace collect::e2e
