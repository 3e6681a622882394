// Another user of the same machine against a real daemon and a real listening agent (findings H6
// and M8): by default it gets nothing, over TCP and Unix sockets, and takes no one's place.
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cstring>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/redteam/raw_http2.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

using fakes::as_other_user;
using fakes::HeldByOtherUser;
using fakes::kOtherUid;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kStats = "/collect.control.v1.Collector/GetStats";
constexpr const char* kProcess = "0123456789abcdef";

class RedTeamLocalUserTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
};

std::string say_hello(RawConnection connection) {
  (void)connection.send(wire::FrameType::kHello, hello(wire::CHANNEL_CONTROL, 4711, kProcess));
  const auto first = connection.receive();
  if (!first) return "nothing";
  if (first->type != wire::FrameType::kRefuse) return "an answer";
  wire::Refuse refuse;
  if (!refuse.ParseFromString(first->body)) return "a broken refusal";
  return std::to_string(refuse.code()) + (refuse.retry() ? " retry " : " ") + refuse.reason();
}

// What a call of GetStats ends with. An empty message represents the request.
std::string call_stats(RawHttp2 connection) {
  if (!connection.is_connected()) return "not connected";
  (void)connection.send(http2::greeting() + http2::call(1, kStats) +
                        http2::frame(0, 1, 1, std::string(5, '\0')));
  (void)connection.receives("grpc-status");
  return connection.received();
}

const std::string kRefused = std::to_string(wire::REFUSE_PRINCIPAL) + " user 65534 may not connect";

TEST_F(RedTeamLocalUserTest, IngestRefusesItOverTcp) {
  const Scratch scratch;
  CollectorProcess collector(scratch);
  const uint16_t port = collector.ingest_port();
  EXPECT_THAT(as_other_user([port] { return say_hello(RawConnection(port)); }),
              HasSubstr(kRefused));
  EXPECT_EQ(say_hello(RawConnection(port)), "an answer");
  EXPECT_THAT(collector.process().errors(), HasSubstr("local_access is \"user\""));
}

// A run's collector: its key lets a new process in, and opens nothing else.
TEST_F(RedTeamLocalUserTest, RunsKeyOnlyAdmitsANewProcess) {
  const Scratch scratch;
  const std::string key(64, 'a');
  write_text_file(scratch / "key", key + "\n");
  CollectorProcess collector(scratch, {"--guest-token-file", scratch / "key"});
  const uint16_t port = collector.ingest_port();
  fakes::Secrets ours;
  RawConnection held(port);
  ASSERT_TRUE(be_welcomed(held, hello(wire::CHANNEL_CONTROL, 4711, kProcess), ours));
  ASSERT_FALSE(ours.resume_key.empty());
  const auto comes_in = [port](const std::string& process, const std::string& token) {
    return as_other_user([&] {
      RawConnection connection(port);
      const auto answer =
          introduce(connection, hello(wire::CHANNEL_CONTROL, 4712, process), {token, ""});
      if (!answer) return std::string("nothing");
      if (answer->type == wire::FrameType::kWelcome) return std::string("welcome");
      wire::Refuse refusal;
      return refusal.ParseFromString(answer->body) ? refusal.reason() : "broken";
    });
  };
  EXPECT_EQ(comes_in("another process.", key), "welcome");
  EXPECT_THAT(comes_in("another process,", ""), HasSubstr("user 65534 may not connect"));
  EXPECT_THAT(comes_in("another process;", std::string(64, 'b')),
              HasSubstr("user 65534 may not connect"));
  EXPECT_THAT(comes_in(kProcess, key), HasSubstr("known here")) << "of another user";
  const uint16_t control = collector.control_port();
  EXPECT_THAT(as_other_user([control] { return call_stats(RawHttp2(control)); }),
              HasSubstr("user 65534 may not connect"));
}

TEST_F(RedTeamLocalUserTest, ControlAnswersItWithPermissionDenied) {
  const Scratch scratch;
  CollectorProcess collector(scratch);
  const uint16_t port = collector.control_port();
  const std::string answer = as_other_user([port] { return call_stats(RawHttp2(port)); });
  EXPECT_THAT(answer, HasSubstr(std::string("grpc-status\x01") + "7"));
  EXPECT_THAT(answer, HasSubstr("user 65534 may not connect"));
  EXPECT_THAT(call_stats(RawHttp2(port)), HasSubstr("grpc-status"));
  EXPECT_THAT(call_stats(RawHttp2(port)), Not(HasSubstr("may not connect")));
}

// The mode of the files keeps it out already; were they opened wide, the uid still would.
TEST_F(RedTeamLocalUserTest, UnixSocketsRefuseItTwice) {
  std::string directory = "/tmp/collect_redteam_XXXXXX";
  ASSERT_NE(::mkdtemp(directory.data()), nullptr);
  ASSERT_EQ(::chmod(directory.c_str(), 0755), 0);
  const Scratch scratch;
  const std::string ingest = directory + "/ingest";
  const std::string control = directory + "/control";
  ChildProcess daemon(scratch.path(), {program("collectord"), "--root", scratch / "root", "--adb",
                                       "off", "--usbmux", "off", "--ingest", "unix:" + ingest,
                                       "--control", "unix:" + control});
  ASSERT_TRUE(eventually(seconds(20), [&] {
    return daemon.errors().find("is ready") != std::string::npos;
  })) << daemon.errors();
  EXPECT_EQ(as_other_user([&] { return call_stats(RawHttp2(control)); }), "not connected");
  EXPECT_EQ(as_other_user([&] { return call_stats(RawHttp2(ingest)); }), "not connected");
  ASSERT_EQ(::chmod(ingest.c_str(), 0666), 0);
  ASSERT_EQ(::chmod(control.c_str(), 0666), 0);
  EXPECT_THAT(as_other_user([&] { return call_stats(RawHttp2(control)); }),
              HasSubstr("user 65534 may not connect"));
  // No frame of the agent protocol is needed to be refused there.
  EXPECT_THAT(as_other_user([&] {
                RawHttp2 wrong(ingest);
                (void)wrong.receives("may not connect");
                return wrong.received();
              }),
              HasSubstr("user 65534 may not connect"));
  EXPECT_THAT(call_stats(RawHttp2(control)), Not(HasSubstr("may not connect")));
  daemon.send_signal(SIGTERM);
  EXPECT_TRUE(daemon.wait(seconds(30)).exited_with(0)) << daemon.errors();
  EXPECT_NE(::access(control.c_str(), F_OK), 0) << "the socket file was left behind";
  ::rmdir(directory.c_str());
}

TEST_F(RedTeamLocalUserTest, MembersOfTheGroupGetIn) {
  const passwd* other = ::getpwuid(kOtherUid);
  if (other == nullptr) GTEST_SKIP() << "user 65534 has no entry here";
  const group* named = ::getgrgid(other->pw_gid);
  ASSERT_NE(named, nullptr);
  const Scratch scratch;
  CollectorProcess collector(scratch, {"--local-access", std::string("group:") + named->gr_name});
  const uint16_t ingest = collector.ingest_port();
  const uint16_t control = collector.control_port();
  EXPECT_EQ(as_other_user([=] { return say_hello(RawConnection(ingest)); }), "an answer");
  EXPECT_THAT(as_other_user([=] { return call_stats(RawHttp2(control)); }),
              Not(HasSubstr("may not connect")));
}

TEST_F(RedTeamLocalUserTest, GroupThatIsMissingIsNoStart) {
  const Scratch scratch;
  const Ending ending = run(scratch.path(), {program("collectord"), "--root", scratch / "root",
                                             "--local-access", "group:no_such_group_here"});
  EXPECT_TRUE(ending.exited_with(2)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("there is no group \"no_such_group_here\""));
}

TEST_F(RedTeamLocalUserTest, AnyLetsItIn) {
  const Scratch scratch;
  CollectorProcess collector(scratch, {"--local-access", "any"});
  const uint16_t port = collector.ingest_port();
  EXPECT_EQ(as_other_user([port] { return say_hello(RawConnection(port)); }), "an answer");
}

// 127.0.0.1 can be reached from the machine's other addresses too; that makes no one remote.
TEST_F(RedTeamLocalUserTest, AnotherAddressOfTheMachineIsNoWayRound) {
  ifaddrs* list = nullptr;
  ASSERT_EQ(::getifaddrs(&list), 0);
  sockaddr_in from{};
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    sockaddr_in candidate{};
    std::memcpy(&candidate, at->ifa_addr, sizeof candidate);
    if ((ntohl(candidate.sin_addr.s_addr) >> 24) != 127) from = candidate;
  }
  ::freeifaddrs(list);
  if (from.sin_family == 0) GTEST_SKIP() << "this machine has no address but loopback";
  const Scratch scratch;
  CollectorProcess collector(scratch);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(collector.ingest_port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string answer = as_other_user([from, to]() -> std::string {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(fd, reinterpret_cast<const sockaddr*>(&from), sizeof from) != 0 ||
        ::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) {
      return "the system has no such way";
    }
    std::string text(4096, '\0');
    const ssize_t got = ::recv(fd, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  });
  if (answer == "the system has no such way") GTEST_SKIP() << answer;
  EXPECT_THAT(answer, HasSubstr("user 65534 may not connect"));
}

TEST_F(RedTeamLocalUserTest, HeldConnectionsTakeNoOthersPlace) {
  const Scratch scratch;
  CollectorProcess collector(scratch, {"--max-connections", "64"});
  const uint16_t ingest = collector.ingest_port();
  const uint16_t control = collector.control_port();
  const HeldByOtherUser stranger([&](const std::function<void()>& hold) {
    std::vector<RawConnection> agents;
    std::vector<RawHttp2> clients;
    for (int i = 0; i < 300; ++i) {
      agents.emplace_back(ingest);
      clients.emplace_back(control);
    }
    hold();
  });
  const Ending stats = collector.ctl({"collectors"});
  EXPECT_TRUE(stats.exited_with(0)) << stats.errors;
  EXPECT_EQ(say_hello(RawConnection(ingest)), "an answer");
}

// `cat trace > /dev/tcp/…` is gone before its owner can be asked; the log says what to do.
TEST_F(RedTeamLocalUserTest, RefusesAFeedThatClosedAtOnce) {
  const Scratch scratch;
  CollectorProcess collector(scratch);
  const uint16_t port = collector.ingest_port();
  for (int i = 0; i < 20; ++i) {
    RawConnection feed(port);
    (void)feed.send(Octets{0x54, 0x52, 0x43, 0x00, 0x01});
  }
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return collector.process().errors().find("keep the connection open") != std::string::npos;
  })) << collector.process().errors();
}

TEST_F(RedTeamLocalUserTest, ListeningAgentDoesNotServeIt) {
  const Scratch scratch;
  const uint16_t port = free_port();
  ChildProcess traced(
      scratch.path(), {"/bin/sleep", "60"},
      {{"LD_PRELOAD", agent_library()}, {"COLLECT_LISTEN", "tcp:" + std::to_string(port)}});
  ASSERT_TRUE(eventually(seconds(20), [port] { return answers(port); }));
  wire::Dial dial;
  dial.set_channel(wire::CHANNEL_CONTROL);
  dial.set_min_version(wire::kProtocolVersion);
  dial.set_max_version(wire::kProtocolVersion);
  const auto answer_to_dial = [&dial, port]() -> std::string {
    RawConnection connection(port);
    (void)connection.send(wire::FrameType::kDial, dial);
    const auto first = connection.receive();
    if (!first) return "closed";
    return first->type == wire::FrameType::kHello ? "a hello" : "something else";
  };
  EXPECT_EQ(as_other_user(answer_to_dial), "closed");
  // Silent connections of its own user: a collector that dials is served all the same.
  std::vector<RawConnection> silent;
  for (int i = 0; i < 8; ++i) silent.emplace_back(port);
  EXPECT_EQ(answer_to_dial(), "a hello");
}

}  // namespace
}  // namespace collect::e2e
