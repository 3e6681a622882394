// Connecting, listening, refusals, and a host program that is careless with descriptors.
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "agent/drain/link/link.h"
#include "proto/wire/codec_rules.h"
#include "tests/agent/drain/drain_fixture.h"

namespace collect::agent {
namespace {

class DrainLinkTest : public DrainTest {
 protected:
  // Sockets of the agent: they lie above everything that this program opens. By raw system calls:
  // this plays a host program that knows nothing of them, and no race detector should connect the
  // two.
  static std::vector<int> agent_sockets() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int top = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 65536));
    std::vector<int> found;
    for (int fd = std::min(kDescriptorFloor, top - kDescriptorMargin); fd < top; ++fd) {
      char target[64] = {};
      const std::string link = "/proc/self/fd/" + std::to_string(fd);
      if (readlink(link.c_str(), target, sizeof target - 1) > 0 &&
          std::string(target).starts_with("socket:")) {
        found.push_back(fd);
      }
    }
    return found;
  }
  static void close_behind_its_back(int fd) { syscall(SYS_close, fd); }
  static std::string socket_name(int fd) {
    char target[64] = {};
    (void)readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof target - 1);
    return target;
  }
  static uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t bytes = sizeof address;
    return getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) == 0
               ? ntohs(address.sin_port)
               : 0;
  }
  // On another socket than that one; the system may have given it the same port.
  static bool listens_again(const std::string& before) {
    const auto sockets = agent_sockets();
    return sockets.size() == 1 && socket_name(sockets[0]) != before &&
           port_of(sockets[0]) == drain_listen_port();
  }

  std::string write_token(const std::string& content) {
    const std::string path = testing::TempDir() + "drain_token_" + std::to_string(getpid());
    std::ofstream(path) << content;
    return path;
  }
  static void set_token_file(Settings& settings, const std::string& path) {
    std::memcpy(settings.token_file, path.c_str(), path.size() + 1);
  }

  void say_goodbye(bool will_return) {
    wire::Bye bye;
    bye.set_will_return(will_return);
    collector.control.send(FrameType::kBye, bye);
    EXPECT_TRUE(collector.data.ends());
    collector.control.close();
    collector.data.close();
  }

  void expect_service(uint32_t stream, uint32_t records) {
    fake::write_index(stream, records);
    collector.take_records(stream, 0, collector.lane(stream, 0).next + records);
    EXPECT_FALSE(HasFailure());
  }
};

TEST_F(DrainLinkTest, KeepsTryingUntilACollectorComes) {
  ASSERT_TRUE(drain_start(connecting()));
  for (int i = 0; i < 3; ++i) collector.accept().close();  // a collector that dies at once
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
}

TEST_F(DrainLinkTest, RetriesGrowAndStayWithinTheirBounds) {
  for (uint32_t attempt = 0; attempt < 40; ++attempt) {
    for (const uint64_t random : {uint64_t{0}, uint64_t{12345}, UINT64_MAX}) {
      const uint64_t delay = retry_delay_ms(attempt, random);
      EXPECT_LE(delay, kLastRetryMs);
      EXPECT_GE(delay, kFirstRetryMs / 2);
      if (attempt >= 6) {
        EXPECT_GE(delay, kLastRetryMs / 2);
      }
    }
  }
  EXPECT_LE(retry_delay_ms(0, UINT64_MAX), kFirstRetryMs);
}

TEST_F(DrainLinkTest, RefusalForGoodEndsTheRecording) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  collector.control = collector.accept();
  (void)collector.control.expect<wire::Hello>(FrameType::kHello);
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_TOKEN);
  refuse.set_reason("no \x1b[31mtoken");
  collector.control.send(FrameType::kRefuse, refuse);
  EXPECT_TRUE(eventually([] { return !is_recording(); }));
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
  EXPECT_TRUE(collector.control.ends());
  EXPECT_EQ(std::string(drain_status()),
            "refused by the collector: no ?[31mtoken; not tried again");
  // It can be started again, when something has changed.
  ASSERT_TRUE(eventually([&] { return drain_start(connecting()) && is_recording(); }));
  collector.welcome_pair();
}

TEST_F(DrainLinkTest, RefusalForNowIsTriedAgain) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.control = collector.accept();
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_SHUTTING_DOWN);
  refuse.set_reason("later");
  refuse.set_retry(true);
  collector.control.send(FrameType::kRefuse, refuse);
  EXPECT_TRUE(eventually([] {
    return std::string(drain_status()) == "refused by the collector: later; trying again later";
  }));
  collector.welcome_pair();
  EXPECT_TRUE(is_recording());
}

TEST_F(DrainLinkTest, WelcomeOfAnotherVersionIsRefused) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.control = collector.accept();
  (void)collector.challenge(collector.control);
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion + 1);
  collector.control.send(FrameType::kWelcome, welcome);
  EXPECT_EQ(collector.control.expect<wire::Refuse>(FrameType::kRefuse).code(),
            wire::REFUSE_VERSION);
}

TEST_F(DrainLinkTest, WelcomeWithFeaturesThatWereNotOfferedIsRefused) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.control = collector.accept();
  const wire::Hello hello = collector.challenge(collector.control);
  EXPECT_EQ(hello.features(), wire::kCodecFeatures);
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_features(hello.features() | 1u << 9);
  collector.control.send(FrameType::kWelcome, welcome);
  EXPECT_EQ(collector.control.expect<wire::Refuse>(FrameType::kRefuse).code(),
            wire::REFUSE_VERSION);
}

TEST_F(DrainLinkTest, RefusesGarbageFromTheCollectorAndReconnects) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  collector.control.send_bytes("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(collector.control.expect<wire::Refuse>(FrameType::kRefuse).code(),
            wire::REFUSE_PROTOCOL);
  EXPECT_TRUE(collector.data.ends());
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair(true);
  expect_service(stream, 10);
}

TEST_F(DrainLinkTest, TokenOfTheFileIsProven) {
  Settings settings = connecting();
  set_token_file(settings, write_token("  secret token\n"));
  ASSERT_TRUE(drain_start(settings));
  collector.token = collector.agent_token = "secret token";
  collector.welcome_pair();
  EXPECT_TRUE(eventually([] { return drain_connected(); }));
}

// Someone else has the collector's port. It gets no proof of the token, and no page; and the agent
// continues trying, for the true one will be back.
TEST_F(DrainLinkTest, CollectorThatDoesNotKnowTheTokenGetsNothing) {
  Settings settings = connecting();
  set_token_file(settings, write_token("secret token"));
  ASSERT_TRUE(drain_start(settings));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  for (const char* token : {"", "secret", "secret tokem"}) {
    Peer squatter = collector.accept();
    const auto hello = squatter.expect<wire::Hello>(FrameType::kHello);
    EXPECT_EQ(hello.SerializeAsString().find("secret"), std::string::npos);
    squatter.send(FrameType::kChallenge, fakes::challenge_for(hello, token, false));
    EXPECT_EQ(squatter.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_TOKEN);
  }
  // A proof of the true collector, for another connection.
  Peer first = collector.accept();
  const auto hello = first.expect<wire::Hello>(FrameType::kHello);
  const wire::Challenge right = fakes::challenge_for(hello, "secret token", false);
  first.close();
  Peer second = collector.accept();
  (void)second.expect<wire::Hello>(FrameType::kHello);
  second.send(FrameType::kChallenge, right);
  EXPECT_EQ(second.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_TOKEN);
  // A Welcome without a Challenge, and a refusal for good.
  Peer third = collector.accept();
  (void)third.expect<wire::Hello>(FrameType::kHello);
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  third.send(FrameType::kWelcome, welcome);
  EXPECT_EQ(third.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_PROTOCOL);
  Peer fourth = collector.accept();
  (void)fourth.expect<wire::Hello>(FrameType::kHello);
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_RESUME);
  fourth.send(FrameType::kRefuse, refuse);
  collector.token = collector.agent_token = "secret token";
  collector.welcome_pair();
  EXPECT_EQ(collector.control_hello.process_id(), hello.process_id());
  collector.take_records(stream, 0, 10);
}

TEST_F(DrainLinkTest, RefusedResumeContinuesAsAnotherProcess) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  const std::string before = collector.control_hello.process_id();
  collector.control.close();
  collector.data.close();
  collector.control = collector.accept();
  EXPECT_EQ(collector.challenge(collector.control).process_id(), before);  // with the right proof
  wire::Refuse refuse;
  refuse.set_code(wire::REFUSE_RESUME);
  refuse.set_reason("another key");
  collector.control.send(FrameType::kRefuse, refuse);
  collector.welcome_pair();
  EXPECT_NE(collector.control_hello.process_id(), before);
  EXPECT_TRUE(is_recording());
  fake::write_index(stream, 10);
  collector.take_records(stream, 0, 20);
  EXPECT_EQ(collector.lane(stream, 0).jumps, 0u) << "what was not acknowledged was lost";
}

TEST_F(DrainLinkTest, WithoutItsTokenTheAgentDoesNotConnect) {
  Settings settings = connecting();
  set_token_file(settings, "/nowhere/token");
  ASSERT_TRUE(drain_start(settings));
  EXPECT_TRUE(eventually([] {
    return std::string(drain_status()).find("token file can't be read") != std::string::npos;
  }));
}

TEST_F(DrainLinkTest, ListensAndSurvivesStrangers) {
  ASSERT_TRUE(drain_start(listening("tcp:0")));
  const uint32_t stream = fake::add_stream(1, "main");
  const uint16_t port = listen_port();
  Peer browser = Peer::dial_tcp(port);
  browser.send_bytes("GET / HTTP/1.1\r\n");
  EXPECT_EQ(browser.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_PROTOCOL);
  Peer gone = Peer::dial_tcp(port);
  gone.close();
  Peer eager = Peer::dial_tcp(port);
  eager.send_frame(FrameType::kHeartbeat, "");
  EXPECT_EQ(eager.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_PROTOCOL);
  Peer long_winded = Peer::dial_tcp(port);
  long_winded.send_frame(FrameType::kDial, std::string(5000, 'x'));
  EXPECT_EQ(long_winded.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_PROTOCOL);
  wire::Dial future;
  future.set_channel(wire::CHANNEL_CONTROL);
  future.set_min_version(wire::kProtocolVersion + 1);
  future.set_max_version(9);
  Peer modern = Peer::dial_tcp(port);
  modern.send(FrameType::kDial, future);
  EXPECT_EQ(modern.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_VERSION);
  Peer silent = Peer::dial_tcp(port);  // says nothing, and keeps its place for a while

  collector.dial_pair(port);
  expect_service(stream, 10);

  wire::Dial second;
  second.set_channel(wire::CHANNEL_CONTROL);
  second.set_min_version(wire::kProtocolVersion);
  second.set_max_version(wire::kProtocolVersion);
  Peer rival = Peer::dial_tcp(port);
  rival.send(FrameType::kDial, second);
  const auto refuse = rival.expect<wire::Refuse>(FrameType::kRefuse);
  EXPECT_EQ(refuse.code(), wire::REFUSE_DUPLICATE);
  EXPECT_TRUE(refuse.retry());
  expect_service(stream, 10);

  // When the first is gone, another may come.
  collector.control.close();
  collector.data.close();
  ASSERT_TRUE(eventually([] { return !drain_connected(); }));
  collector.dial_pair(port, true);
  expect_service(stream, 10);
  expect_index(stream, 30);
}

TEST_F(DrainLinkTest, ListenerWantsItsToken) {
  Settings settings = listening("tcp:0");
  set_token_file(settings, write_token("right\n"));
  ASSERT_TRUE(drain_start(settings));
  const uint32_t stream = fake::add_stream(1, "main");
  for (const char* token : {"", "wrong", "righ", "right "}) {
    Peer peer = Peer::dial_tcp(listen_port());
    const wire::Hello hello = collector.dial(peer, wire::CHANNEL_CONTROL);
    peer.send(FrameType::kChallenge, fakes::challenge_for(hello, token, true));
    EXPECT_EQ(peer.expect<wire::Refuse>(FrameType::kRefuse).code(), wire::REFUSE_TOKEN) << token;
  }
  collector.token = collector.agent_token = "right";
  collector.dial_pair(listen_port());
  expect_service(stream, 5);
}

TEST_F(DrainLinkTest, ListensOnUnixAndAbstractSockets) {
  const std::string path = testing::TempDir() + "drain_socket_" + std::to_string(getpid());
  const std::string names[] = {path,
                               std::string(1, '\0') + "collect_agent_" + std::to_string(getpid())};
  const std::string addresses[] = {"unix:" + path, "abstract:"};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(drain_start(listening(addresses[i])));
    Peer peer;
    ASSERT_TRUE(eventually([&] {
      peer = Peer::dial_unix(names[i]);
      return peer.is_open();
    }));
    EXPECT_EQ(collector.dial(peer, wire::CHANNEL_CONTROL).pid(), static_cast<uint32_t>(getpid()));
    drain_stop(0);
  }
  EXPECT_NE(access(path.c_str(), F_OK), 0) << "the socket file was left behind";
}

TEST_F(DrainLinkTest, ItsDescriptorsAreHighAndCloseOnExec) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.welcome_pair();
  ASSERT_TRUE(eventually([] { return drain_connected(); }));
  const auto sockets = agent_sockets();
  EXPECT_EQ(sockets.size(), 2u);
  for (const int fd : sockets) EXPECT_EQ(syscall(SYS_fcntl, fd, F_GETFD), FD_CLOEXEC);
}

TEST_F(DrainLinkTest, ProgramThatClosesEveryDescriptorCostsAReconnect) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  for (const int fd : agent_sockets()) close_behind_its_back(fd);
  collector.welcome_pair(true);
  expect_service(stream, 10);
  expect_index(stream, 20);
}

TEST_F(DrainLinkTest, ProgramThatReusesItsDescriptorsKeepsThem) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  const auto sockets = agent_sockets();
  ASSERT_EQ(sockets.size(), 2u);
  int ours[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ours), 0);
  for (const int fd : sockets) ASSERT_EQ(syscall(SYS_dup3, ours[0], fd, 0), fd);
  fake::write_index(stream, 10);
  collector.welcome_pair(true);
  collector.take_records(stream, 0, 20);
  expect_index(stream, 20);
  for (const int fd : sockets) {
    EXPECT_EQ(syscall(SYS_fcntl, fd, F_GETFD), 0) << "the agent closed the program's descriptor";
    close_behind_its_back(fd);
  }
  char byte = 0;
  EXPECT_EQ(recv(ours[1], &byte, 1, MSG_DONTWAIT), -1) << "the agent wrote to the program's socket";
  close(ours[0]);
  close(ours[1]);
}

TEST_F(DrainLinkTest, ListenerThatWasClosedListensAgain) {
  ASSERT_TRUE(drain_start(listening("tcp:0")));
  (void)listen_port();
  const auto sockets = agent_sockets();
  ASSERT_EQ(sockets.size(), 1u);
  const std::string before = socket_name(sockets[0]);
  close_behind_its_back(sockets[0]);
  ASSERT_TRUE(eventually([&] { return listens_again(before); }));
  collector.dial_pair(drain_listen_port());
}

// As iOS leaves a listener behind when the app was suspended: the descriptor is there, and accepts
// no one any more.
TEST_F(DrainLinkTest, ListenerThatTheSystemEndedListensAgain) {
  ASSERT_TRUE(drain_start(listening("tcp:0")));
  (void)listen_port();
  const auto sockets = agent_sockets();
  ASSERT_EQ(sockets.size(), 1u);
  const std::string before = socket_name(sockets[0]);
  ASSERT_EQ(syscall(SYS_shutdown, sockets[0], SHUT_RDWR), 0);
  ASSERT_TRUE(eventually([&] { return listens_again(before); }));
  collector.dial_pair(drain_listen_port());
}

// The child closes its copies, and the parent's link lives on.
TEST_F(DrainLinkTest, ForkedChildLetsGoWithoutDisturbingTheParent) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  drain_before_fork();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    drain_after_fork_in_child(true);
    _exit(agent_sockets().empty() && !drain_connected() ? 0 : 1);
  }
  drain_after_fork_in_parent();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  expect_service(stream, 10);
  expect_index(stream, 20);
}

TEST_F(DrainLinkTest, StopWithoutACollectorIsQuick) {
  // No one has listened on this port for a while: it was ours and is closed.
  uint16_t port = 0;
  {
    ScriptedCollector gone;
    port = static_cast<uint16_t>(std::stoi(gone.address().substr(gone.address().find(':') + 1)));
  }
  Settings settings;
  settings.role = Role::kConnect;
  set_address(settings, "127.0.0.1:" + std::to_string(port));
  ASSERT_TRUE(drain_start(settings));
  fake::write_index(fake::add_stream(1, "main"), 10);
  const auto before = std::chrono::steady_clock::now();
  drain_stop(300000);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
  ASSERT_TRUE(drain_start(listening("tcp:0")));
  drain_stop(300000);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
}

TEST_F(DrainLinkTest, ShortProgramStillReachesItsCollector) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  std::thread stopping([] { drain_stop(60000); });
  collector.welcome_pair();
  collector.seal();
  stopping.join();
  expect_index(stream, 10);
}

// The collector was away when the program ended, came back, and the link broke once more.
TEST_F(DrainLinkTest, ReconnectsWhenTheLinkBreaksDuringTheFinalFlush) {
  ASSERT_TRUE(drain_start(connecting()));
  collector.accept().close();
  // That attempt is over, and not the one that is still made when the program ends.
  EXPECT_TRUE(eventually(
      [] { return std::string(drain_status()).starts_with("no link to the collector"); }));
  const uint32_t stream = fake::add_stream(1, "main");
  fake::write_index(stream, 10);
  std::thread stopping([] { drain_stop(60000); });
  EXPECT_TRUE(eventually([] { return !is_recording(); }));
  collector.welcome_pair();
  EXPECT_TRUE(eventually([] { return drain_connected(); }));
  collector.control.close();
  collector.data.close();
  collector.welcome_pair();
  collector.seal();
  stopping.join();
  expect_index(stream, 10);
}

// The program ends while the collector restarts: it tries again until the collector is there.
TEST_F(DrainLinkTest, FinalFlushWaitsForACollectorThatWillReturn) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  say_goodbye(true);
  EXPECT_TRUE(eventually([] {
    return std::string(drain_status()) ==
           "the link to the collector broke: the collector stops, and will be back; trying again";
  }));
  fake::write_index(stream, 10);
  EXPECT_TRUE(is_recording());
  std::thread stopping([] { drain_stop(60000); });
  EXPECT_TRUE(eventually([] { return !is_recording(); }));
  for (int i = 0; i < 3; ++i) collector.accept().close();
  collector.welcome_pair(true);
  collector.seal();
  stopping.join();
  expect_index(stream, 20);
}

// The cable is pulled, and the program ends before it is back.
TEST_F(DrainLinkTest, FinalFlushWaitsForACollectorSeenRecently) {
  Settings settings = connecting();
  settings.exit_flush_ms = 600000;
  ASSERT_TRUE(drain_start(settings));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  collector.control.close();
  collector.data.close();
  EXPECT_TRUE(eventually([] { return !drain_connected(); }));
  fake::write_index(stream, 10);
  std::thread stopping([] { drain_stop(60000); });
  EXPECT_TRUE(eventually([] { return !is_recording(); }));
  for (int i = 0; i < 3; ++i) collector.accept().close();
  collector.welcome_pair(true);
  collector.seal();
  stopping.join();
  expect_index(stream, 20);
}

TEST_F(DrainLinkTest, FinalFlushSkipsACollectorAwayForLong) {
  Settings settings = connecting();
  settings.exit_flush_ms = 0;
  ASSERT_TRUE(drain_start(settings));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  collector.control.close();
  collector.data.close();
  EXPECT_TRUE(eventually([] { return !drain_connected(); }));
  const auto before = std::chrono::steady_clock::now();
  std::thread stopping([] { drain_stop(300000); });
  collector.accept().close();
  stopping.join();
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::minutes(1));
}

// A socket that is closed with unread bytes in it resets the connection, and takes the Bye along.
TEST_F(DrainLinkTest, LinkStaysUntilItsGoodbyeWasRead) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  std::thread stopping([] { drain_stop(60000); });
  collector.seal();
  EXPECT_EQ(collector.control.expect<wire::Bye>(FrameType::kBye).reason(), "exit");
  collector.control.send(FrameType::kClockProbe, wire::ClockProbe());
  (void)collector.control.expect<wire::ClockReply>(FrameType::kClockReply);
  collector.control.close();
  EXPECT_TRUE(collector.data.ends());
  stopping.join();
}

TEST_F(DrainLinkTest, CollectorThatStopsForGoodEndsTheRecording) {
  ASSERT_TRUE(drain_start(connecting()));
  const uint32_t stream = fake::add_stream(1, "main");
  collector.welcome_pair();
  expect_service(stream, 10);
  say_goodbye(false);
  EXPECT_TRUE(eventually([&] { return fake::was_released(stream); }));
  EXPECT_FALSE(is_recording());
  EXPECT_EQ(std::string(drain_status()), "the collector stops for good; not tried again");
}

TEST_F(DrainLinkTest, BadAddressesAreRefusedWithASentence) {
  Settings settings;
  EXPECT_FALSE(drain_start(settings));
  for (const char* address : {"", "host", "host:", "host:0", "host:65536", "host:1x", ":7710"}) {
    settings = Settings();
    settings.role = Role::kConnect;
    set_address(settings, address);
    EXPECT_FALSE(drain_start(settings)) << address;
    EXPECT_NE(std::string(drain_status()).find("the agent is off: "), std::string::npos);
  }
  for (const char* address : {"", "tcp:", "tcp:x", "tcp:10-5", "tcp:1000-2000", "unix:", "7710"}) {
    EXPECT_FALSE(drain_start(listening(address))) << address;
  }
  EXPECT_FALSE(is_recording());
}

}  // namespace
}  // namespace collect::agent
