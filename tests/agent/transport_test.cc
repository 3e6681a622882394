#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "agent/transport/address.h"
#include "agent/transport/socket.h"

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

using Strings = std::vector<std::string>;

TEST(Address, ConnectForms) {
  EXPECT_EQ(connect_addresses("127.0.0.1:7710"), Strings{"127.0.0.1 7710"});
  EXPECT_EQ(connect_addresses("[::1]:65535"), Strings{"::1 65535"});
  EXPECT_EQ(connect_addresses("localhost:1"), (Strings{"127.0.0.1 1", "::1 1"}));
  EXPECT_EQ(connect_addresses("unix:/run/x"), Strings{std::string("/run/x\0", 7)});
  EXPECT_EQ(connect_addresses("abstract:name"), Strings{std::string("\0name", 5)});
  EXPECT_TRUE(connect_addresses("tcp:7710:x")[0].starts_with("error: "));
  EXPECT_TRUE(connect_addresses(("unix:" + std::string(108, 'p')).c_str())[0].starts_with("error"));
  EXPECT_EQ(connect_addresses(("unix:" + std::string(107, 'p')).c_str()),
            Strings{std::string(107, 'p') + '\0'});
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
    ASSERT_EQ(listener.accept(server), 0);
  }

  Socket listener;
  Socket client;
  Socket server;
  Address address{};
};

TEST_F(SocketTest, MovesBytesWithoutBlocking) {
  listen_on("tcp:0");
  connect_both();
  uint8_t in[8];
  EXPECT_EQ(server.receive(in, sizeof in).status, IoStatus::kAgain);
  char first[] = "ab";
  char second[] = "cd";
  const iovec parts[] = {{first, 2}, {second, 2}};
  const IoResult sent = client.send(parts, 2);
  ASSERT_EQ(sent.status, IoStatus::kDone);
  ASSERT_EQ(sent.bytes, 4u);
  pollfd coming{server.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&coming, 1, 60000), 1);
  EXPECT_EQ(server.receive(in, sizeof in).bytes, 4u);
  // A reader that does not read fills the link, and nobody waits.
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
  // With two low numbers free the pair is made on those.
  for (int i = 0; i < 2; ++i) {
    close(filling.back());
    filling.pop_back();
  }
  connect_both();
  EXPECT_TRUE(client.is_ours());
  EXPECT_TRUE(server.is_ours());
  for (const int fd : filling) close(fd);
  setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(SocketTest, TakesOverTheSocketFileOfADeadListener) {
  const std::string path = testing::TempDir() + "transport_socket_" + std::to_string(getpid());
  const std::string text = "unix:" + path;
  listen_on(text.c_str());
  Socket second;
  EXPECT_EQ(second.listen(address), EADDRINUSE) << "the first still lives";
  listener.close();  // and leaves its file behind
  EXPECT_EQ(access(path.c_str(), F_OK), 0);
  EXPECT_EQ(second.listen(address), 0);
  second.close();
  unlink(path.c_str());
}

TEST_F(SocketTest, NobodyListening) {
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
}

TEST_F(SocketTest, AnotherUserMayNotConnectToALocalSocket) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  listen_on("abstract:");
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(2);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address.storage), address.bytes) != 0) _exit(3);
    char byte = 0;
    _exit(recv(fd, &byte, 1, 0) == 0 ? 0 : 4);
  }
  pollfd coming{listener.fd(), POLLIN, 0};
  ASSERT_EQ(poll(&coming, 1, 60000), 1);
  EXPECT_EQ(listener.accept(server), EACCES);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the connection was not closed";
}

}  // namespace
}  // namespace collect::agent
