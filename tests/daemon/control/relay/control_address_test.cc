#include "daemon/control/relay/control_address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/fakes/machine/socket_address.h"

namespace collect::control {
namespace {

TEST(ControlAddressTest, LoopbackAndUnixSockets) {
  for (const char* text : {"127.0.0.1:7711", "127.1.2.3:0", "localhost:65535", "[::1]:7711",
                           "unix:/run/collectord.sock"}) {
    const auto address = parse_control_address(text);
    ASSERT_TRUE(address.ok()) << text << ": " << to_string(address.error());
    EXPECT_EQ(address->target(), text);
    EXPECT_TRUE(address->loopback || address->unix_socket) << text;
  }
  EXPECT_TRUE(parse_control_address("unix:/" + std::string(106, 'x')).ok());
}

TEST(ControlAddressTest, EverythingElseIsNotLoopback) {
  for (const char* text : {"0.0.0.0:7711", "[::]:7711", "192.168.1.2:7711", "example.org:7711",
                           "128.0.0.1:7711", "127.0.0.1.example.org:7711"}) {
    const auto address = parse_control_address(text);
    ASSERT_TRUE(address.ok()) << text;
    EXPECT_FALSE(address->loopback) << text;
    EXPECT_EQ(address->target(), text);
  }
}

TEST(ControlAddressTest, BrokenOnesAreRefused) {
  const std::string long_path = "unix:/" + std::string(107, 'x');
  for (const std::string& text :
       {std::string(), std::string(":"), std::string("7711"), std::string(":7711"),
        std::string("127.0.0.1"), std::string("127.0.0.1:"), std::string("127.0.0.1:65536"),
        std::string("127.0.0.1:-1"), std::string("127.0.0.1:77x"), std::string("unix:"),
        std::string("unix:relative"), long_path}) {
    const auto address = parse_control_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_EQ(address.code(), Code::kInvalidArgument);
  }
}

// A socket that someone else bound, and where it says that it is.
TEST(ControlAddressTest, SocketsSayWhereTheyAre) {
  const auto bound = [](const fakes::SocketAddress& address) {
    const int fd = ::socket(address.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd, address.get(), address.bytes), 0);
    const auto found = bound_address(fd);
    ::close(fd);
    EXPECT_TRUE(found.ok());
    return found.ok() ? *found : ControlAddress();
  };
  const ControlAddress v4 = bound(fakes::tcp4(INADDR_LOOPBACK, 0));
  EXPECT_EQ(v4.host, "127.0.0.1");
  EXPECT_NE(v4.port, 0);
  EXPECT_TRUE(v4.loopback);
  EXPECT_FALSE(bound(fakes::tcp4(INADDR_ANY, 0)).loopback);
  const ControlAddress v6 = bound(fakes::tcp6(in6addr_loopback, 0));
  EXPECT_EQ(v6.host, "::1");
  EXPECT_NE(v6.port, 0);
  EXPECT_TRUE(v6.loopback);
  const std::string path = testing::TempDir() + "control_" + std::to_string(::getpid());
  EXPECT_EQ(bound(fakes::unix_name(path)).target(), "unix:" + path);
  ::unlink(path.c_str());
  const std::string name = "control_" + std::to_string(::getpid());
  EXPECT_EQ(bound(fakes::unix_name(std::string(1, '\0') + name)).target(), "unix:@" + name);
  EXPECT_FALSE(bound_address(-1).ok());
  int neither[2];
  ASSERT_EQ(::pipe(neither), 0);
  EXPECT_FALSE(bound_address(neither[0]).ok());
  ::close(neither[0]);
  ::close(neither[1]);
  const int netlink = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, 0);
  EXPECT_EQ(bound_address(netlink).code(), Code::kUnsupported);
  ::close(netlink);
}

TEST(ControlAddressTest, SocketPathIsTakenOnceAndFreeAfterwards) {
  const std::string path = testing::TempDir() + "listen_" + std::to_string(::getpid());
  const auto address = parse_control_address("unix:" + path);
  ASSERT_TRUE(address.ok());
  const auto first = listen_on(*address);
  ASSERT_TRUE(first.ok());
  struct stat made{};
  EXPECT_EQ(::stat(path.c_str(), &made), 0);
  EXPECT_EQ(made.st_mode & 0777, 0600u);
  EXPECT_EQ(listen_on(*address).code(), Code::kAlreadyExists);
  ::close(*first);
  const auto next = listen_on(*address);
  ASSERT_TRUE(next.ok()) << "no one listens on what is there";
  ::close(*next);
  ::unlink(path.c_str());
  std::ofstream(path) << "a file";
  EXPECT_EQ(listen_on(*address).code(), Code::kAlreadyExists);
  ::unlink(path.c_str());
}

TEST(ControlAddressTest, PortIsTakenOnce) {
  ControlAddress address = *parse_control_address("127.0.0.1:0");
  const auto first = listen_on(address);
  ASSERT_TRUE(first.ok());
  address.port = bound_address(*first)->port;
  const auto second = listen_on(address);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
  EXPECT_NE(second.error().message.find("is in use, perhaps by another collectord"),
            std::string::npos);
  ::close(*first);
  const auto v6 = listen_on(*parse_control_address("[::1]:0"));
  if (v6.ok()) ::close(*v6);
  EXPECT_TRUE(v6.ok() || v6.code() == Code::kIo);
  EXPECT_FALSE(listen_on(*parse_control_address("no-such-host.invalid:1")).ok());
  // A bracket alone is a part of a name that there is not.
  for (const char* host : {"[localhost", "localhost]", "[127.0.0.1", "127.0.0.1]"}) {
    address.host = host;
    address.port = 0;
    EXPECT_FALSE(listen_on(address).ok()) << host;
  }
}

}  // namespace
}  // namespace collect::control
