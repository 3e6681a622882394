#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "agent/transport/address.h"
#include "agent/transport/socket.h"
#include "tests/fakes/addresses.h"
#include "tests/fakes/machine/foreign_listener.h"

namespace collect::agent {
namespace {

std::string text_of(const Address& address) {
  char host[INET6_ADDRSTRLEN] = {};
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in in{};
    std::memcpy(&in, &address.storage, sizeof in);
    inet_ntop(AF_INET, &in.sin_addr, host, sizeof host);
  } else if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 in{};
    std::memcpy(&in, &address.storage, sizeof in);
    inet_ntop(AF_INET6, &in.sin6_addr, host, sizeof host);
  } else {
    sockaddr_un un{};
    std::memcpy(&un, &address.storage, sizeof un);
    const size_t length = address.bytes - offsetof(sockaddr_un, sun_path);
    return std::string(un.sun_path, length);
  }
  return std::string(host) + " " + std::to_string(port_of(address));
}

std::vector<std::string> connect_addresses(const char* text) {
  AddressList list;
  const char* error = resolve_connect(text, list);
  if (error != nullptr) return {std::string("error: ") + error};
  std::vector<std::string> found;
  for (uint32_t i = 0; i < list.count; ++i) found.push_back(text_of(list.items[i]));
  return found;
}

size_t open_descriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

using Strings = std::vector<std::string>;

TEST(Address, ConnectForms) {
  EXPECT_EQ(connect_addresses("127.0.0.1:7710"), Strings{"127.0.0.1 7710"});
  EXPECT_EQ(connect_addresses("[::1]:65535"), Strings{"::1 65535"});
  EXPECT_EQ(connect_addresses("localhost:1"), (Strings{"127.0.0.1 1", "::1 1"}));
  EXPECT_EQ(connect_addresses("unix:/run/x"), Strings{std::string("/run/x\0", 7)});
  EXPECT_EQ(connect_addresses("abstract:name"), Strings{std::string("\0name", 5)});
  EXPECT_EQ(connect_addresses("tcp:7710"), Strings{"127.0.0.1 7710"});
  EXPECT_TRUE(connect_addresses("tcp:7710:x")[0].starts_with("error: "));
  EXPECT_TRUE(connect_addresses(("unix:" + std::string(108, 'p')).c_str())[0].starts_with("error"));
  EXPECT_EQ(connect_addresses(("unix:/" + std::string(106, 'p')).c_str()),
            Strings{"/" + std::string(106, 'p') + '\0'});
}

TEST(Address, ListenForms) {
  AddressList list;
  ASSERT_EQ(resolve_listen("tcp:7720-7729", list), nullptr);
  ASSERT_EQ(list.count, 10u);
  EXPECT_EQ(text_of(list.items[9]), "127.0.0.1 7729");
  ASSERT_EQ(resolve_listen("abstract:", list), nullptr);
  EXPECT_EQ(text_of(list.items[0]),
            std::string(1, '\0') + "collect_agent_" + std::to_string(getpid()));
  EXPECT_NE(resolve_listen("tcp:1-17", list), nullptr);
  EXPECT_EQ(resolve_listen("tcp:1-16", list), nullptr);
}

TEST(Address, SentencesAboutWhatIsNone) {
  AddressList list;
  for (const auto& [text, error] : std::initializer_list<std::pair<const char*, const char*>>{
           {"unix:", "the Unix socket has no name"},
           {"unix:run/x", "a Unix socket's path begins with /"},
           {"abstract:", "the Unix socket has no name"},
           {"tcp:", "behind tcp: is one port"},
           {"tcp:0", "behind tcp: is one port"},
           {"tcp:65536", "behind tcp: is one port"},
           {"tcp:7a", "behind tcp: is one port"},
           {"127.0.0.1", "the address is not host:port, unix:/path or abstract:name"},
           {"127.0.0.1:0", "the address is not host:port, unix:/path or abstract:name"},
           {"127.0.0.1:", "the address is not host:port, unix:/path or abstract:name"},
           {"127.0.0.1:1x", "the address is not host:port, unix:/path or abstract:name"},
           {"127.0.0.1:/", "the address is not host:port, unix:/path or abstract:name"},
           {"::1:7710", "a number of IPv6 is in brackets"},
           {"[::1:7710", "a number of IPv6 is in brackets"},
           {":7710", "the address has no host, or one too long"},
           {"[]:7710", "the address has no host, or one too long"}}) {
    list.count = 5;
    EXPECT_STREQ(resolve_connect(text, list), error) << text;
    EXPECT_EQ(list.count, 0u) << text;
  }
  EXPECT_STREQ(resolve_connect((std::string(256, 'h') + ":1").c_str(), list),
               "the address has no host, or one too long");
  for (const auto& [text, error] : std::initializer_list<std::pair<const char*, const char*>>{
           {"127.0.0.1:1", "the address is not tcp:port, unix:/path or abstract:name"},
           {"unix:", "the Unix socket has no name"},
           {"tcp:", "tcp: needs a port number"},
           {"tcp:-5", "tcp: needs a port number"},
           {"tcp:65536", "tcp: needs a port number"},
           {"tcp:5-", "tcp: needs a port number, or first-last"},
           {"tcp:5-4", "tcp: needs a port number, or first-last"},
           {"tcp:5-65536", "tcp: needs a port number, or first-last"},
           {"tcp:5-21", "a range has at most 16 ports"}}) {
    list.count = 5;
    EXPECT_STREQ(resolve_listen(text, list), error) << text;
    EXPECT_EQ(list.count, 0u) << text;
  }
  ASSERT_EQ(resolve_listen("tcp:5-20", list), nullptr);
  EXPECT_EQ(list.count, 16u);
  ASSERT_EQ(resolve_listen("tcp:65535-65535", list), nullptr);
  ASSERT_EQ(list.count, 1u);
  EXPECT_EQ(text_of(list.items[0]), "127.0.0.1 65535");
  EXPECT_EQ(port_of(Address{}), 0u);
}

TEST(Address, HostOfOneWithTls) {
  EXPECT_TRUE(is_tls("tls://host:1"));
  EXPECT_FALSE(is_tls("tls:/host:1"));
  EXPECT_STREQ(after_tls("tls://host:1"), "host:1");
  EXPECT_STREQ(after_tls("host:1"), "host:1");
  char host[256];
  for (const auto& [text, wanted] : std::initializer_list<std::pair<const char*, const char*>>{
           {"tls://name.example:7710", "name.example"},
           {"name.example:7710", "name.example"},
           {"tls://[fe80::1]:7710", "fe80::1"},
           {"tls://[a]:7710", "a"},
           {"tls://[]:7710", ""},
           {"tls://[:7710", "["},
           {"tls://[a:7710", "[a"},
           {"tls://a]:7710", "a]"}}) {
    std::memset(host, 'x', sizeof host);
    EXPECT_EQ(host_of_tls(text, host), nullptr) << text;
    EXPECT_STREQ(host, wanted) << text;
  }
  for (const char* text : {"tls://host", "tls://unix:/run/x:1", "tls://abstract:x:1"}) {
    EXPECT_STREQ(host_of_tls(text, host), "an address with TLS is tls://host:port") << text;
  }
}

class SocketTest : public testing::Test {
 protected:
  void TearDown() override {
    for (Socket* socket : {&listener, &client, &server}) socket->close();
  }
  void listen_on(const char* text) {
    AddressList list;
    ASSERT_EQ(resolve_listen(text, list), nullptr);
    ASSERT_EQ(listener.listen(list.items[0]), 0);
    address = list.items[0];
  }
  void connect_both() {
    if (port_of(address) == 0 && !address.is_local()) {
      AddressList list;
      const std::string text = "127.0.0.1:" + std::to_string(listener.local_port());
      ASSERT_EQ(resolve_connect(text.c_str(), list), nullptr);
      address = list.items[0];
    }
    bool connected = false;
    ASSERT_EQ(client.connect(address, &connected), 0);
    pollfd waiting{client.fd(), POLLOUT, 0};
    ASSERT_EQ(poll(&waiting, 1, 60000), 1);
    ASSERT_EQ(client.finish_connect(), 0);
    pollfd coming{listener.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&coming, 1, 60000), 1);
    ASSERT_EQ(listener.accept(server, false), 0);
  }

  Socket listener;
  Socket client;
  Socket server;
  Address address{};
};

TEST_F(SocketTest, MovesBytesWithoutBlocking) {
  listen_on("tcp:0");
  connect_both();
  errno = EINTR;  // of something else, long ago
  uint8_t in[8];
  EXPECT_EQ(server.receive(in, sizeof in).status, IoStatus::kAgain);
  char first[] = "ab";
  char second[] = "cd";
  const iovec parts[] = {{first, 2}, {second, 2}};
  errno = EINTR;
  const IoResult sent = client.send(parts, 2);
  ASSERT_EQ(sent.status, IoStatus::kDone);
  ASSERT_EQ(sent.bytes, 4u);
  pollfd coming{server.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&coming, 1, 60000), 1);
  EXPECT_EQ(server.receive(in, sizeof in).bytes, 4u);
  // A reader that does not read fills the link, and no one waits.
  std::vector<uint8_t> much(1 << 20);
  const iovec block{much.data(), much.size()};
  IoStatus status = IoStatus::kDone;
  for (int i = 0; i < 1000 && status == IoStatus::kDone; ++i)
    status = client.send(&block, 1).status;
  EXPECT_EQ(status, IoStatus::kAgain);
  server.close();
  for (int i = 0; i < 1000 && status != IoStatus::kEnd; ++i) status = client.send(&block, 1).status;
  EXPECT_EQ(status, IoStatus::kEnd) << "and no SIGPIPE ended this program";
}

TEST_F(SocketTest, KnowsItsDescriptorFromAnothersOfTheSameNumber) {
  listen_on("tcp:0");
  connect_both();
  const int number = client.fd();
  EXPECT_TRUE(client.is_ours());
  ASSERT_EQ(close(number), 0);
  EXPECT_FALSE(client.is_ours());
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  ASSERT_EQ(dup2(pipes[1], number), number);
  EXPECT_FALSE(client.is_ours());
  char byte = 'x';
  const iovec part{&byte, 1};
  EXPECT_EQ(client.send(&part, 1).status, IoStatus::kLost);
  EXPECT_EQ(client.receive(reinterpret_cast<uint8_t*>(&byte), 1).status, IoStatus::kLost);
  client.close();
  EXPECT_FALSE(client.is_open());
  EXPECT_NE(fcntl(number, F_GETFD), -1) << "another's descriptor was closed";
  close(number);
  close(pipes[0]);
  close(pipes[1]);
}

TEST_F(SocketTest, StaysBelowALowLimitAndAboveEverythingElse) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit low{256, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  listen_on("tcp:0");
  EXPECT_GE(listener.fd(), 256 - kDescriptorMargin);
  EXPECT_LT(listener.fd(), 256);
  // With the table full there is no socket, and an error that says so.
  std::vector<int> filling;
  for (int fd = open("/dev/null", O_RDONLY | O_CLOEXEC); fd >= 0;
       fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) {
    filling.push_back(fd);
  }
  bool connected = false;
  EXPECT_EQ(client.connect(address, &connected), EMFILE);
  EXPECT_FALSE(client.is_open());
  // With one number free a socket has that, and no copy of a higher one.
  const int last = filling.back();
  close(last);
  AddressList any;
  ASSERT_EQ(resolve_listen("tcp:0", any), nullptr);
  Socket alone;
  EXPECT_EQ(alone.listen(any.items[0]), 0);
  EXPECT_EQ(alone.fd(), last);
  EXPECT_EQ(fcntl(last, F_GETFD), FD_CLOEXEC);
  alone.close();
  filling.pop_back();
  // With three low numbers free the pair is made on those; the third is there to ask who connects.
  for (int i = 0; i < 2; ++i) {
    close(filling.back());
    filling.pop_back();
  }
  connect_both();
  EXPECT_TRUE(client.is_ours());
  EXPECT_TRUE(server.is_ours());
  for (const Socket* socket : {&client, &server}) {
    EXPECT_EQ(fcntl(socket->fd(), F_GETFD), FD_CLOEXEC);
  }
  for (const int fd : filling) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(SocketTest, TakesOverTheSocketFileOfADeadListener) {
  const std::string path = testing::TempDir() + "transport_socket_" + std::to_string(getpid());
  const std::string text = "unix:" + path;
  listen_on(text.c_str());
  bool connected = false;
  ASSERT_EQ(client.connect(address, &connected), 0);
  EXPECT_TRUE(connected);
  client.close();
  Socket second;
  const size_t open_before = open_descriptors();
  EXPECT_EQ(second.listen(address), EADDRINUSE) << "the first still lives";
  EXPECT_EQ(open_descriptors(), open_before);
  listener.close();  // and leaves its file behind
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_EQ(second.listen(address), 0);
  second.close();
  unlink(path.c_str());
}

TEST_F(SocketTest, ConnectIsRefusedWithoutAListener) {
  listen_on("tcp:0");
  AddressList list;
  const std::string text = "127.0.0.1:" + std::to_string(listener.local_port());
  ASSERT_EQ(resolve_connect(text.c_str(), list), nullptr);
  listener.close();
  bool connected = true;
  int error = client.connect(list.items[0], &connected);
  if (error == 0) {
    pollfd waiting{client.fd(), POLLOUT, 0};
    ASSERT_EQ(poll(&waiting, 1, 60000), 1);
    error = client.finish_connect();
  }
  EXPECT_EQ(error, ECONNREFUSED);
  EXPECT_FALSE(connected);
}

// As when it is given the port that it dials: who answers there is no one but itself.
TEST_F(SocketTest, SocketConnectedToItselfHasNoPeerUser) {
  listen_on("tcp:0");
  connect_both();
  const sockaddr unspecified{AF_UNSPEC, {}};
  ASSERT_EQ(::connect(client.fd(), &unspecified, sizeof unspecified), 0);
  sockaddr_in itself{};
  itself.sin_family = AF_INET;
  itself.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof itself;
  ASSERT_EQ(::bind(client.fd(), reinterpret_cast<sockaddr*>(&itself), bytes), 0);
  ASSERT_EQ(::getsockname(client.fd(), reinterpret_cast<sockaddr*>(&itself), &bytes), 0);
  (void)::connect(client.fd(), reinterpret_cast<sockaddr*>(&itself), bytes);
  pollfd waiting{client.fd(), POLLOUT, 0};
  ASSERT_EQ(poll(&waiting, 1, 60000), 1);
  EXPECT_EQ(client.finish_connect(), ECONNREFUSED);
}

// Emulators know no sock_diag, so users can't be distinguished over TCP there.
bool can_ask_for_users() {
  const int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG);
  if (netlink >= 0) close(netlink);
  return netlink >= 0 || errno != EPROTONOSUPPORT;
}

// Connects to `address`; 0: and the connection was closed.
int connect_and_wait(const Address& address) {
  const int fd = socket(address.storage.ss_family, SOCK_STREAM, 0);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.bytes) != 0) {
    return 3;
  }
  char byte = 0;
  return recv(fd, &byte, 1, 0) == 0 ? 0 : 4;
}

TEST_F(SocketTest, AnotherUserMayNotConnect) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  for (const char* text : {"abstract:", "tcp:0"}) {
    listener.close();
    listen_on(text);
    if (!address.is_local()) {
      AddressList list;
      const std::string dialled = "127.0.0.1:" + std::to_string(listener.local_port());
      ASSERT_EQ(resolve_connect(dialled.c_str(), list), nullptr);
      address = list.items[0];
    }
    fakes::OtherUser user([this] { return connect_and_wait(address); });
    pollfd coming{listener.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&coming, 1, 60000), 1);
    EXPECT_EQ(listener.accept(server, false), EACCES) << text;
    EXPECT_EQ(user.wait(), 0) << text << ": the connection was not closed";
  }
}

// The kernel shows uid 0 for a socket that no one holds any more.
TEST_F(SocketTest, AdmitsAClosedPeerOnlyWithAToken) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  for (const bool asks_for_token : {false, true}) {
    listener.close();
    listen_on("tcp:0");
    AddressList list;
    const std::string dialled = "127.0.0.1:" + std::to_string(listener.local_port());
    ASSERT_EQ(resolve_connect(dialled.c_str(), list), nullptr);
    bool connected = false;
    ASSERT_EQ(client.connect(list.items[0], &connected), 0);
    pollfd waiting{client.fd(), POLLOUT, 0};
    ASSERT_EQ(poll(&waiting, 1, 60000), 1);
    client.close();
    pollfd coming{listener.fd(), POLLIN, 0};
    ASSERT_EQ(poll(&coming, 1, 60000), 1);
    EXPECT_EQ(listener.accept(server, asks_for_token), asks_for_token ? 0 : EACCES);
  }
}

using fakes::ForeignListener;
using Accepts = ForeignListener::Accepts;

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  void TearDown() override { client.close(); }

  // Whose the listener is for someone who connects to `text`.
  PeerUser server_at(const std::string& text, uid_t* uid = nullptr) {
    client.close();
    AddressList list;
    EXPECT_EQ(resolve_connect(text.c_str(), list), nullptr);
    bool connected = false;
    EXPECT_EQ(client.connect(list.items[0], &connected), 0) << text;
    pollfd waiting{client.fd(), POLLOUT, 0};
    EXPECT_EQ(poll(&waiting, 1, 60000), 1);
    EXPECT_EQ(client.finish_connect(), 0) << text;
    dialled = list.items[0];
    const Server server = client.server(dialled);
    if (uid != nullptr) *uid = server.uid;
    return server.user;
  }
  static std::string at(const char* host, const ForeignListener& listener) {
    return std::string(host) + ":" + std::to_string(listener.port());
  }

  Socket client;
  Address dialled{};
};

TEST_F(ServerTest, DetectsAnotherUsersListenerBeforeAndAfterAccept) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  for (const Accepts accepts : {Accepts::kNever, Accepts::kAlways, Accepts::kOnce}) {
    struct Case {
      fakes::SocketAddress listens;
      const char* host;
    };
    for (const Case& given : {Case{fakes::tcp4(INADDR_LOOPBACK, 0), "127.0.0.1"},
                              Case{fakes::tcp4(INADDR_ANY, 0), "127.0.0.1"},
                              Case{fakes::tcp6(in6addr_loopback, 0), "[::1]"},
                              Case{fakes::tcp6(in6addr_any, 0), "[::1]"},
                              Case{fakes::tcp6(in6addr_any, 0), "127.0.0.1"}}) {
      const ForeignListener listener(given.listens, accepts);
      uid_t uid = 0;
      EXPECT_EQ(server_at(at(given.host, listener), &uid), PeerUser::kOther) << given.host;
      EXPECT_EQ(uid, fakes::kOtherUid);
      if (accepts == Accepts::kNever) continue;
      while (listener.accepted() == 0) usleep(1000);
      EXPECT_NE(client.server(dialled).user, PeerUser::kTrusted) << "after accept";
    }
  }
}

// It accepts and makes room for the collector: whose the port is then says nothing.
TEST_F(ServerTest, ConnectionThatWasAcceptedByAnotherUserStaysIts) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  const ForeignListener squatter(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kOnce);
  EXPECT_EQ(server_at(at("127.0.0.1", squatter)), PeerUser::kOther);
  while (squatter.accepted() == 0) usleep(1000);
  const ForeignListener next(fakes::tcp4(INADDR_LOOPBACK, squatter.port()), Accepts::kNever,
                             fakes::kOtherUid - 1);
  const Server server = client.server(dialled);
  EXPECT_EQ(server.user, PeerUser::kOther);
  EXPECT_EQ(server.uid, fakes::kOtherUid);
}

TEST_F(ServerTest, PeerThatIsGoneIsUnknown) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  const ForeignListener squatter(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kOnceAndCloses);
  (void)server_at(at("127.0.0.1", squatter));
  while (squatter.accepted() == 0) usleep(1000);
  EXPECT_EQ(client.server(dialled).user, PeerUser::kUnknown);
}

TEST_F(ServerTest, ItsOwnUserServes) {
  if (!can_ask_for_users()) GTEST_SKIP() << "this system has no sock_diag";
  for (const Accepts accepts : {Accepts::kNever, Accepts::kAlways}) {
    const ForeignListener v4(fakes::tcp4(INADDR_LOOPBACK, 0), accepts, getuid());
    EXPECT_EQ(server_at(at("127.0.0.1", v4)), PeerUser::kTrusted);
    const ForeignListener v6(fakes::tcp6(in6addr_any, 0), accepts, getuid());
    EXPECT_EQ(server_at(at("[::1]", v6)), PeerUser::kTrusted);
    EXPECT_EQ(server_at(at("127.0.0.1", v6)), PeerUser::kTrusted);
    const std::string name = "collect_server_" + std::to_string(getpid());
    const ForeignListener local(fakes::unix_name(std::string(1, '\0') + name), accepts, getuid());
    EXPECT_EQ(server_at("abstract:" + name), PeerUser::kTrusted);
  }
}

TEST_F(ServerTest, TrustsAnotherUsersSocketOnlyInAPrivateDirectory) {
  const std::string name = "collect_server_" + std::to_string(getpid());
  const ForeignListener abstract(fakes::unix_name(std::string(1, '\0') + name));
  EXPECT_EQ(server_at("abstract:" + name), PeerUser::kOther);

  // Its own directory, below one in which everybody can make one.
  std::string shared = "/tmp/collect_server_XXXXXX";
  ASSERT_NE(mkdtemp(shared.data()), nullptr);
  ASSERT_EQ(chown(shared.c_str(), fakes::kOtherUid, fakes::kOtherUid), 0);
  {
    const ForeignListener squatter(fakes::unix_name(shared + "/ingest"));
    uid_t uid = 0;
    EXPECT_EQ(server_at("unix:" + shared + "/ingest", &uid), PeerUser::kOther);
    EXPECT_EQ(uid, fakes::kOtherUid);
  }
  unlink((shared + "/ingest").c_str());
  rmdir(shared.c_str());

  // As the service has it: root gave it the directory.
  std::string service = "/run/collect_server_XXXXXX";
  if (mkdtemp(service.data()) == nullptr) GTEST_SKIP() << "/run can't be written";
  ASSERT_EQ(chown(service.c_str(), fakes::kOtherUid, fakes::kOtherUid), 0);
  {
    const ForeignListener collector(fakes::unix_name(service + "/ingest"));
    EXPECT_EQ(server_at("unix:" + service + "/ingest"), PeerUser::kTrusted);
    ASSERT_EQ(chmod(service.c_str(), 0775), 0);
    EXPECT_EQ(server_at("unix:" + service + "/ingest"), PeerUser::kOther) << "a group can write it";
    ASSERT_EQ(chmod(service.c_str(), 0755), 0);
    ASSERT_EQ(chown(service.c_str(), fakes::kOtherUid - 1, 0), 0);
    EXPECT_EQ(server_at("unix:" + service + "/ingest"), PeerUser::kOther) << "a third user's";
  }
  unlink((service + "/ingest").c_str());
  rmdir(service.c_str());
}

// Its parser is not the collector's (formats/core/address.h), and takes the same.
TEST(Address, TakesAndRefusesWhatTheCollectorDoes) {
  for (const std::string& text : fakes::good_addresses()) {
    if (text.starts_with("example.org")) continue;  // asks a resolver
    AddressList list{};
    const char* const fault = resolve_connect(text.c_str(), list);
    EXPECT_EQ(fault, nullptr) << text << ": " << fault;
  }
  for (const std::string& text : fakes::bad_addresses()) {
    AddressList list{};
    EXPECT_NE(resolve_connect(text.c_str(), list), nullptr) << text;
  }
}

}  // namespace
}  // namespace collect::agent
