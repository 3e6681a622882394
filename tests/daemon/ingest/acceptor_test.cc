// Where the collector listens, what its sockets are like, and whom it lets in.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/daemon/ingest/ingest_fixture.h"
#include "tests/fakes/certificates.h"
#include "tests/fakes/machine/other_user.h"
#include "tests/fakes/machine/own_network.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::ingest {
namespace {

using fakes::FakeAgent;
using fakes::FakeProcess;
using fakes::FrameSocket;
using testing::HasSubstr;

class AcceptorTest : public IngestTest {
 protected:
  // Why it can't listen; kNone when it can.
  Result<std::string> bound() {
    auto ingest = Ingest::bind(options_, *fs_, reported_);
    if (!ingest.ok()) return ingest.error();
    return (*ingest)->address();
  }
  std::string socket_path() const { return root_ + "/ingest.sock"; }
  FrameSocket connect() { return FrameSocket::connect(address()); }
  bool records(uint8_t id = 1) {
    FakeProcess process;
    process.id_byte = id;
    FakeAgent agent(process);
    if (!agent.connect(address())) return false;
    record_all(agent, 1, 1, 10);
    return true;
  }
  // What a connection receives before it ends.
  static std::optional<wire::Refuse> refusal_of(FrameSocket& socket) {
    const auto frame = socket.receive_type(wire::FrameType::kRefuse);
    return frame ? std::optional(frame->parsed<wire::Refuse>()) : std::nullopt;
  }
};

TEST_F(AcceptorTest, FileOfAUnixSocketIsTheCollectorsOwn) {
  options_.listen = "unix:" + socket_path();
  start();
  EXPECT_EQ(address(), options_.listen);
  struct stat info{};
  ASSERT_EQ(::stat(socket_path().c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto second = bound();
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_THAT(second.error().message, HasSubstr("is in use"));
  EXPECT_TRUE(records()) << "the file is still there";
  stop();
  EXPECT_NE(::stat(socket_path().c_str(), &info), 0) << "it goes with the collector";
}

TEST_F(AcceptorTest, ReplacesASocketFileWithoutAListener) {
  options_.listen = "unix:" + socket_path();
  {
    const int handle = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto where = fakes::unix_name(socket_path());
    ASSERT_EQ(::bind(handle, where.get(), where.bytes), 0);
    ::close(handle);
  }
  start();
  EXPECT_TRUE(records());
  stop();
  // What is no socket is someone's, and stays.
  std::ofstream(socket_path()) << "mine";
  const auto refused = bound();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kAlreadyExists);
  std::string text;
  std::ifstream(socket_path()) >> text;
  EXPECT_EQ(text, "mine");
}

TEST_F(AcceptorTest, AbstractNameServesToo) {
  options_.listen = "abstract:ingest_test_" + std::to_string(::getpid());
  start();
  EXPECT_EQ(address(), options_.listen);
  const int handle = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto where = fakes::unix_name(std::string(1, '\0') + address().substr(9));
  ASSERT_EQ(::connect(handle, where.get(), where.bytes), 0);
  FakeAgent agent;
  EXPECT_TRUE(agent.open_control(FrameSocket(handle)));
}

TEST_F(AcceptorTest, PortIsTakenAgainAtOnce) {
  start();
  {
    FrameSocket unknown = connect();
    const uint8_t noise[] = {'n', 'o', 'p', 'e'};
    ASSERT_TRUE(unknown.send_bytes(noise));
    EXPECT_TRUE(unknown.ends()) << "by the collector first, which leaves the port in TIME_WAIT";
  }
  ASSERT_TRUE(eventually([this] { return ingest_->counters().connections_refused == 1; }));
  options_.listen = address();
  const auto taken = bound();
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.code(), Code::kAlreadyExists);
  EXPECT_THAT(taken.error().message, HasSubstr(options_.listen));
  stop();
  start();
  EXPECT_TRUE(records());
}

TEST_F(AcceptorTest, AddressesThatCannotBeHadAreNamed) {
  for (const char* address :
       {"", "nonsense", "unix:/none/of/this/is/there.sock", "192.0.2.1:7710"}) {
    options_.listen = address;
    options_.token = "token";
    EXPECT_FALSE(bound().ok()) << address;
  }
}

// No child of the daemon gets them, and no small frame waits for the next.
TEST_F(AcceptorTest, SocketsAreCloseOnExecAndDoNotDelay) {
  start();
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  const auto port = static_cast<uint16_t>(std::atoi(address().substr(10).c_str()));
  int listeners = 0, connections = 0;
  for (int handle = 0; handle < 1024; ++handle) {
    sockaddr_in own{};
    socklen_t bytes = sizeof own;
    if (::getsockname(handle, reinterpret_cast<sockaddr*>(&own), &bytes) != 0) continue;
    if (own.sin_family != AF_INET || ntohs(own.sin_port) != port) continue;
    EXPECT_EQ(::fcntl(handle, F_GETFD), FD_CLOEXEC);
    int is_listener = 0, no_delay = 0;
    bytes = sizeof(int);
    ASSERT_EQ(::getsockopt(handle, SOL_SOCKET, SO_ACCEPTCONN, &is_listener, &bytes), 0);
    ASSERT_EQ(::getsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &no_delay, &bytes), 0);
    ++(is_listener != 0 ? listeners : connections);
    EXPECT_NE(no_delay, 0);
  }
  EXPECT_EQ(listeners, 1);
  EXPECT_EQ(connections, 2);
}

// ---- sockets that were handed over

int listening_on(const fakes::SocketAddress& where) {
  const int handle = ::socket(where.get()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::bind(handle, where.get(), where.bytes), 0);
  EXPECT_EQ(::listen(handle, 16), 0);
  return handle;
}

bool is_open(int handle) {
  return ::fcntl(handle, F_GETFD) >= 0;
}

TEST_F(AcceptorTest, InheritedSocketIsServedWhereItIsBound) {
  options_.listen = "ignored";
  options_.listening = listening_on(fakes::tcp4(INADDR_LOOPBACK, 0));
  start();
  EXPECT_THAT(address(), testing::StartsWith("127.0.0.1:"));
  EXPECT_TRUE(records(1));
  const int tcp = options_.listening;
  stop();
  EXPECT_FALSE(is_open(tcp));

  // A Unix socket is plain even with TLS, and its file is left to the process that made it.
  const fakes::Authority authority(root_, "ca");
  const fakes::CertifiedKey server = authority.issue("server");
  auto tls = TlsContext::load({server.certificate, server.key, ""});
  ASSERT_TRUE(tls.ok());
  options_.tls = *tls;
  options_.listening = listening_on(fakes::unix_name(socket_path()));
  start();
  EXPECT_EQ(address(), "unix:" + socket_path());
  EXPECT_TRUE(records(2));
  stop();
  EXPECT_EQ(::access(socket_path().c_str(), F_OK), 0);
}

TEST_F(AcceptorTest, ReachableInheritedSocketNeedsTlsAndACheck) {
  options_.listening = listening_on(fakes::tcp4(INADDR_ANY, 0));
  const int handle = options_.listening;
  const auto refused = bound();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.error().message, HasSubstr("needs tls_certificate and tls_key"));
  EXPECT_FALSE(is_open(handle));
}

TEST_F(AcceptorTest, RejectsInheritedNonSockets) {
  options_.listening = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int handle = options_.listening;
  const auto refused = bound();
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("inherited ingest socket"));
  EXPECT_FALSE(is_open(handle));
}

// ---- limits

// Out of descriptors: pending connections are refused, and accepting continues when there are some
// again.
TEST_F(AcceptorTest, RefusesForNowWithoutDescriptors) {
  capture_log();
  start();
  FakeAgent agent;  // stays, so that nothing is closed meanwhile
  ASSERT_TRUE(agent.connect(address()));
  record_all(agent, 1, 1, 10);
  FrameSocket client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto where =
      fakes::tcp4(INADDR_LOOPBACK, static_cast<uint16_t>(std::atoi(address().substr(10).c_str())));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(lowest_free);
  const rlimit none{static_cast<rlim_t>(lowest_free), before.rlim_max};
  const uint64_t accepted = ingest_->counters().connections_accepted;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool is_connected = ::connect(client.handle(), where.get(), where.bytes) == 0;
  const auto refusal = refusal_of(client);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_connected);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), wire::REFUSE_RESOURCES);
  EXPECT_TRUE(refusal->retry());
  EXPECT_TRUE(eventually([&] { return ingest_->counters().connections_refused == 1; }));
  EXPECT_TRUE(eventually([&] {
    return log_->text().find("accept: Too many open files; 1 turned away") != std::string::npos;
  })) << log_->text();
  EXPECT_EQ(ingest_->counters().connections_accepted, accepted);
  EXPECT_TRUE(records(2));
}

// One's own connections that have not said hello give way first, the oldest of them.
TEST_F(AcceptorTest, EvictsSilentConnectionsAtTheLimit) {
  options_.max_connections = 3;
  start();
  std::vector<FrameSocket> silent;
  for (int at = 0; at < 3; ++at) {
    silent.push_back(connect());
    ASSERT_TRUE(
        eventually([&] { return ingest_->counters().connections_accepted == silent.size(); }));
  }
  FakeAgent agent;
  ASSERT_TRUE(agent.connect(address()));
  EXPECT_TRUE(silent[0].ends(milliseconds{0}));
  EXPECT_TRUE(silent[1].ends(milliseconds{0}));
  EXPECT_EQ(ingest_->counters().connections_refused, 2u);
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kConnections), 3u);
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kDescriptors), 3u);
}

// Their places are given back with the connection, however it ended.
TEST_F(AcceptorTest, ConnectionsAreChargedWhileTheyLast) {
  start();
  const auto used = [this](principal::Resource resource) {
    return ingest_->budget().used(resource);
  };
  {
    FakeAgent agent;
    ASSERT_TRUE(agent.connect(address()));
    EXPECT_EQ(used(principal::Resource::kConnections), 2u);
    const auto account = ingest_->budget().account(principal::Principal::of_uid(::geteuid()));
    EXPECT_EQ(account->used(principal::Resource::kConnections), 2u);
    EXPECT_EQ(account->used(principal::Resource::kDescriptors), 2u);
  }
  EXPECT_TRUE(eventually([&] { return used(principal::Resource::kConnections) == 0; }));
  EXPECT_TRUE(eventually([&] { return used(principal::Resource::kDescriptors) == 0; }));
}

class OtherUserTest : public AcceptorTest {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be two users";
  }
  FrameSocket as_other() {
    FrameSocket socket;
    fakes::on_thread_of_other_user([&] { socket = connect(); });
    return socket;
  }
};

TEST_F(OtherUserTest, OnlyItsOwnUserGetsIn) {
  start();
  FrameSocket other = as_other();
  const auto refusal = refusal_of(other);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), wire::REFUSE_PRINCIPAL);
  EXPECT_FALSE(refusal->retry());
  EXPECT_TRUE(other.ends());
  EXPECT_EQ(ingest_->counters().connections_refused, 1u);
  EXPECT_TRUE(records());
  // Over TCP a token is proof enough.
  ASSERT_TRUE(ingest_->set_access("secret", nullptr).ok());
  FakeProcess process;
  process.token = "secret";
  process.id_byte = 2;
  FakeAgent agent(process);
  EXPECT_TRUE(agent.open_control(as_other()));
}

// A guest is asked for the token, its own user is not; and agents that have it see that it is
// known.
TEST_F(OtherUserTest, GuestProvesItsToken) {
  options_.guest_token = "key of the run";
  start();
  const auto comes_in = [&](FrameSocket socket, uint8_t id, const std::string& token) {
    FakeProcess process;
    process.id_byte = id;
    process.token = token;
    FakeAgent agent(process);
    if (agent.open_control(std::move(socket))) return std::string("welcome");
    const auto refusal = agent.refused();
    return refusal ? std::to_string(refusal->code()) + " " + refusal->reason() : "nothing";
  };
  EXPECT_EQ(comes_in(as_other(), 1, "key of the run"), "welcome");
  const std::string kept_out =
      std::to_string(wire::REFUSE_PRINCIPAL) + " user 65534 may not connect";
  EXPECT_THAT(comes_in(as_other(), 2, ""), testing::StartsWith(kept_out));
  EXPECT_THAT(comes_in(as_other(), 3, "key of another"), testing::StartsWith(kept_out));
  EXPECT_EQ(comes_in(connect(), 4, ""), "welcome");
  EXPECT_EQ(comes_in(connect(), 5, "key of the run"), "welcome");
  // A dial9 stream can prove nothing.
  FrameSocket feed = as_other();
  constexpr uint8_t kDial9[] = {0x54, 0x52, 0x43, 0x00, 0x01};
  ASSERT_TRUE(feed.send_bytes(kDial9));
  EXPECT_TRUE(feed.ends());
}

// What a Unix socket asks for is the user alone.
TEST_F(OtherUserTest, UnixSocketTakesNoGuests) {
  options_.listen = "unix:" + root_ + ".socket";
  options_.guest_token = "key of the run";
  start();
  ASSERT_EQ(::chmod((root_ + ".socket").c_str(), 0777), 0);
  FrameSocket other = as_other();
  const auto refusal = refusal_of(other);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), wire::REFUSE_PRINCIPAL);
}

TEST_F(OtherUserTest, UnixSocketAsksForTheUserInAnyCase) {
  options_.listen = "unix:" + root_ + ".socket";
  options_.token = "secret";
  start();
  ASSERT_EQ(::chmod((root_ + ".socket").c_str(), 0777), 0);
  FrameSocket other = as_other();
  const auto refusal = refusal_of(other);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), wire::REFUSE_PRINCIPAL);
}

// A user with very little is let in at the cost of others who have not sent a hello.
TEST_F(OtherUserTest, EvictsPendingConnectionsForASmallerUser) {
  options_.listen = "unix:" + root_ + ".socket";
  options_.local_access = *principal::LocalAccess::parse("any");
  options_.max_connections = kLeastConnections + 1;
  start();
  ASSERT_EQ(::chmod((root_ + ".socket").c_str(), 0777), 0);
  std::vector<FrameSocket> silent;
  for (uint64_t at = 0; at <= kLeastConnections; ++at) {
    FrameSocket socket = as_other();
    silent.push_back(std::move(socket));
    ASSERT_TRUE(
        eventually([&] { return ingest_->counters().connections_accepted == silent.size(); }));
  }
  const uint64_t before = ingest_->budget().used(principal::Resource::kConnections);
  ASSERT_GE(before, kLeastConnections);
  // Agents of ours: they have said hello, and are not turned out any more.
  std::vector<std::unique_ptr<FakeAgent>> agents;
  for (uint8_t id = 1; id <= kLeastConnections / 2; ++id) {
    FakeProcess process;
    process.id_byte = id;
    agents.push_back(std::make_unique<FakeAgent>(process));
    ASSERT_TRUE(agents.back()->connect(address())) << int(id);
  }
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kConnections), kLeastConnections + 1);
  FrameSocket one_more = connect();
  const auto refusal = refusal_of(one_more);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->code(), wire::REFUSE_LIMIT);
  EXPECT_TRUE(refusal->retry());
  EXPECT_FALSE(silent.back().ends(milliseconds{0})) << "we have what everybody may have";
}

// ---- addresses that are not loopback

class RemoteTest : public AcceptorTest {
 protected:
  void SetUp() override {
    if (!network_.fault().empty()) GTEST_SKIP() << network_.fault();
  }
  static FrameSocket connect_to(const std::string& address) {
    const auto port =
        static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str()));
    const int handle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto where = fakes::tcp4(fakes::kOwnAddress, port);
    EXPECT_EQ(::connect(handle, where.get(), where.bytes), 0);
    return FrameSocket(handle);
  }
  const fakes::OwnNetwork network_;
};

TEST_F(RemoteTest, AddressHasItsShareOfConnections) {
  const fakes::Authority authority(root_, "ca");
  const fakes::CertifiedKey server = authority.issue("server");
  auto tls = TlsContext::load({server.certificate, server.key, ""});
  ASSERT_TRUE(tls.ok());
  options_.tls = *tls;
  options_.token = "secret";
  options_.listen = std::string(fakes::kOwnAddressText) + ":0";
  options_.connections_per_address = 2;
  capture_log();
  start();
  FrameSocket first = connect_to(address());
  FrameSocket second = connect_to(address());
  ASSERT_TRUE(eventually([this] { return ingest_->counters().connections_accepted == 2; }));
  FrameSocket third = connect_to(address());
  EXPECT_TRUE(third.ends());
  EXPECT_FALSE(first.ends(milliseconds{0}));
  EXPECT_FALSE(second.ends(milliseconds{0}));
  EXPECT_EQ(ingest_->counters().connections_refused, 1u);
  EXPECT_THAT(log_->text(), HasSubstr("more than 2 connections of one address"));
  first.close();
  EXPECT_TRUE(eventually([this] {
    return ingest_->counters().connections_refused >= 1 &&
           ingest_->budget().used(principal::Resource::kConnections) == 1;
  }));
  FrameSocket again = connect_to(address());
  ASSERT_TRUE(eventually([this] { return ingest_->counters().connections_accepted == 4; }));
  EXPECT_FALSE(again.ends(milliseconds{20}));
}

// What is dialled is plain: a token says that the way is not to be trusted.
TEST_F(RemoteTest, WithATokenOnlyThisMachineIsDialled) {
  const int listener = listening_on(fakes::tcp4(fakes::kOwnAddress, 0));
  sockaddr_in bound{};
  socklen_t bytes = sizeof bound;
  ASSERT_EQ(::getsockname(listener, reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
  const std::string agent =
      std::string(fakes::kOwnAddressText) + ":" + std::to_string(ntohs(bound.sin_port));
  options_.token = "secret";
  options_.attach = {agent};
  start();
  EXPECT_TRUE(reported_.agent([](const auto& one) {
    return one.status.find("what is dialled is not encrypted") != std::string::npos;
  }));
  FrameSocket refused(::accept(listener, nullptr, nullptr));
  EXPECT_FALSE(refused.receive().has_value()) << "not a byte";
  EXPECT_EQ(ingest_->budget().used(principal::Resource::kConnections), 0u);
  // Without a token it is, and charged to that address.
  ASSERT_TRUE(ingest_->set_access("", nullptr).ok());
  EXPECT_TRUE(eventually([&] {
    FrameSocket dialled(::accept(listener, nullptr, nullptr));
    if (!dialled.receive().has_value()) return false;
    const principal::Principal owner{principal::Principal::Kind::kAddress, fakes::kOwnAddressText};
    EXPECT_EQ(ingest_->budget().account(owner)->used(principal::Resource::kConnections), 1u);
    EXPECT_EQ(ingest_->budget().account(owner)->used(principal::Resource::kDescriptors), 1u);
    return true;
  }));
  ::close(listener);
}

}  // namespace
}  // namespace collect::ingest
