#include "daemon/principal/peer_user.h"

#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include <cerrno>
#include <thread>
#include <vector>

#include "tests/fakes/machine/foreign_listener.h"
#include "tests/fakes/machine/own_network.h"

namespace collect::principal {
namespace {

using fakes::kOtherUid;
using fakes::kOwnAddress;
using fakes::SocketAddress;

SocketAddress loopback_v4(uint16_t port) {
  return fakes::tcp4(INADDR_LOOPBACK, port);
}

SocketAddress loopback_v6(uint16_t port, bool is_mapped_v4) {
  return fakes::tcp6(is_mapped_v4 ? fakes::mapped_loopback() : in6addr_loopback, port);
}

std::string abstract_name() {
  return std::string(1, '\0') + "collect_peer_user_" + std::to_string(::getpid());
}

class TestListener {
 public:
  explicit TestListener(const SocketAddress& address) {
    fd_ = ::socket(address.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd_, address.get(), address.bytes), 0);
    EXPECT_EQ(::listen(fd_, 8), 0);
  }
  ~TestListener() { ::close(fd_); }
  uint16_t port() const {
    sockaddr_in6 bound{};
    socklen_t bytes = sizeof bound;
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &bytes);
    return ntohs(bound.sin6_port);  // at the same place in sockaddr_in
  }
  int accept() const { return ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC); }

 private:
  int fd_ = -1;
};

enum class Then { kKeep, kEndSending, kClose };

// A connection that this user holds.
class ConnectedUser {
 public:
  ConnectedUser(uid_t uid, const SocketAddress& to, Then then = Then::kKeep)
      : held_([&](const fakes::HeldByOtherUser::Hold& hold) { connect(to, then, hold); }, uid) {}

 private:
  static void connect(const SocketAddress& to, Then then,
                      const fakes::HeldByOtherUser::Hold& hold) {
    const int fd = ::socket(to.raw.ss_family, SOCK_STREAM, 0);
    if (::connect(fd, to.get(), to.bytes) != 0) return;
    if (then == Then::kEndSending) ::shutdown(fd, SHUT_WR);
    if (then == Then::kClose) ::close(fd);
    hold();
  }

  fakes::HeldByOtherUser held_;
};

using fakes::ForeignListener;
using Accepts = ForeignListener::Accepts;

int connected_to(const SocketAddress& address) {
  const int fd = ::socket(address.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(fd, address.get(), address.bytes), 0);
  return fd;
}

class PeerUserTest : public testing::Test {
 protected:
  // Accepts the connection that is waiting.
  Peer accepted_by(const TestListener& listener) {
    const int fd = listener.accept();
    Result<Peer> peer = lookup_.identify(fd);
    EXPECT_TRUE(peer.ok()) << to_string(peer.error());
    ::close(fd);
    return peer.ok() ? *peer : Peer{};
  }
  uid_t uid_of(const TestListener& listener) {
    const Peer peer = accepted_by(listener);
    EXPECT_TRUE(peer.is_local);
    EXPECT_EQ(peer.principal, Principal::of_uid(peer.uid)) << peer.unknown;
    return peer.uid;
  }
  void needs_root() {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as another user";
  }

  PeerLookup lookup_;
};

TEST_F(PeerUserTest, KnowsItsOwnUserOnEveryKindOfSocket) {
  const TestListener v4(loopback_v4(0));
  const ConnectedUser first(::getuid(), loopback_v4(v4.port()));
  EXPECT_EQ(uid_of(v4), ::getuid());
  const TestListener v6(loopback_v6(0, false));
  const ConnectedUser second(::getuid(), loopback_v6(v6.port(), false));
  EXPECT_EQ(uid_of(v6), ::getuid());
  const TestListener local(fakes::unix_name(abstract_name()));
  const ConnectedUser third(::getuid(), fakes::unix_name(abstract_name()));
  EXPECT_EQ(uid_of(local), ::getuid());
}

TEST_F(PeerUserTest, KnowsAnotherUserOnEveryKindOfSocket) {
  needs_root();
  if (IsSkipped()) return;
  const TestListener v4(loopback_v4(0));
  const ConnectedUser first(kOtherUid, loopback_v4(v4.port()));
  EXPECT_EQ(uid_of(v4), kOtherUid);
  const TestListener v6(loopback_v6(0, false));
  const ConnectedUser second(kOtherUid, loopback_v6(v6.port(), false));
  EXPECT_EQ(uid_of(v6), kOtherUid);
  const TestListener local(fakes::unix_name(abstract_name()));
  const ConnectedUser third(kOtherUid, fakes::unix_name(abstract_name()));
  EXPECT_EQ(uid_of(local), kOtherUid);
}

// A socket of IPv6 with an IPv4 address inside, at either end, is kept among those of IPv4.
TEST_F(PeerUserTest, KnowsAnotherUserBehindMappedAddresses) {
  needs_root();
  if (IsSkipped()) return;
  const TestListener mapped(loopback_v6(0, true));
  const ConnectedUser plain(kOtherUid, loopback_v4(mapped.port()));
  EXPECT_EQ(uid_of(mapped), kOtherUid);
  const TestListener v4(loopback_v4(0));
  const ConnectedUser inside(kOtherUid, loopback_v6(v4.port(), true));
  EXPECT_EQ(uid_of(v4), kOtherUid);
}

TEST_F(PeerUserTest, PeerThatEndedSendingIsStillItsUser) {
  needs_root();
  if (IsSkipped()) return;
  const TestListener listener(loopback_v4(0));
  const ConnectedUser half_closed(kOtherUid, loopback_v4(listener.port()), Then::kEndSending);
  EXPECT_EQ(uid_of(listener), kOtherUid);
}

// The kernel shows uid 0 for a socket that no one holds any more. It must not pass for root.
TEST_F(PeerUserTest, PeerThatClosedIsUnknownAndNotRoot) {
  const TestListener listener(loopback_v4(0));
  const ConnectedUser gone(::getuid(), loopback_v4(listener.port()), Then::kClose);
  const Peer peer = accepted_by(listener);
  EXPECT_TRUE(peer.is_local);
  EXPECT_EQ(peer.principal.kind, Principal::Kind::kUnknown);
  EXPECT_NE(peer.unknown, "");
}

TEST_F(PeerUserTest, OnlyAnOpenSocketWithAnOwnerCounts) {
  const SocketAnswer good{TCP_ESTABLISHED, 4711, 1000, 40'000, 7710};
  EXPECT_TRUE(has_owner(good, 40'000, 7710));
  for (const uint8_t state : {TCP_SYN_SENT, TCP_SYN_RECV, TCP_TIME_WAIT, TCP_CLOSE, TCP_LAST_ACK,
                              TCP_LISTEN, TCP_CLOSING}) {
    SocketAnswer other = good;
    other.state = state;
    EXPECT_FALSE(has_owner(other, 40'000, 7710)) << int{state};
  }
  SocketAnswer orphan = good;
  orphan.inode = 0;
  EXPECT_FALSE(has_owner(orphan, 40'000, 7710));
  EXPECT_FALSE(has_owner(good, 40'001, 7710));
  EXPECT_FALSE(has_owner(good, 40'000, 0));
}

TEST_F(PeerUserTest, NumberOfUnmappedUsersIsUnknown) {
  EXPECT_EQ(local_peer(kOtherUid, false).principal.kind, Principal::Kind::kUnknown);
  EXPECT_EQ(local_peer(kOtherUid, true).principal, Principal::of_uid(kOtherUid));
  EXPECT_EQ(local_peer(1000, false).principal, Principal::of_uid(1000));
}

// uid_map of user_namespaces(7): the first number inside, the first outside, how many.
TEST_F(PeerUserTest, OnlyAWholeMapHasEveryUser) {
  EXPECT_TRUE(maps_every_user("         0          0 4294967295\n"));
  EXPECT_FALSE(maps_every_user("0 0 4294967294\n"));
  EXPECT_FALSE(maps_every_user("0 1000 4294967295\n"));
  EXPECT_FALSE(maps_every_user("1 0 4294967295\n"));
  EXPECT_FALSE(maps_every_user("0 0\n"));
  EXPECT_FALSE(maps_every_user(""));
}

TEST_F(PeerUserTest, ExcusesThePeerOnlyForOurOwnShortage) {
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN, EINTR}) {
    EXPECT_EQ(no_answer(error).code, Code::kExhausted) << error;
  }
  EXPECT_EQ(no_answer(ENOENT).code, Code::kNotFound);
  for (const int error : {EPROTONOSUPPORT, EPERM, ECONNREFUSED, EINVAL}) {
    EXPECT_EQ(no_answer(error).code, Code::kUnsupported) << error;
    EXPECT_NE(no_answer(error).message.find(std::strerror(error)), std::string::npos);
  }
}

// A message of netlink(7): length, type, flags, sequence, port, in the order of this machine.
template <class Body>
std::vector<uint8_t> netlink_message(uint16_t type, uint32_t sequence, const Body& body) {
  nlmsghdr header{};
  header.nlmsg_len = sizeof header + sizeof body;
  header.nlmsg_type = type;
  header.nlmsg_seq = sequence;
  std::vector<uint8_t> message(header.nlmsg_len);
  std::memcpy(message.data(), &header, sizeof header);
  std::memcpy(message.data() + sizeof header, &body, sizeof body);
  return message;
}

TEST_F(PeerUserTest, KernelSaysASocketOrWhyThereIsNone) {
  inet_diag_msg socket{};
  socket.idiag_state = TCP_ESTABLISHED;
  socket.idiag_inode = 4711;
  socket.idiag_uid = 1000;
  socket.id.idiag_sport = htons(40'000);
  socket.id.idiag_dport = htons(7710);
  const auto found = netlink_message(SOCK_DIAG_BY_FAMILY, 7, socket);
  const KernelReply reply = read_kernel_reply(found, 7);
  EXPECT_TRUE(reply.is_ours);
  EXPECT_EQ(reply.error, 0);
  EXPECT_TRUE(has_owner(reply.socket, 40'000, 7710));
  EXPECT_EQ(reply.socket.uid, 1000u);
  nlmsgerr failure{};
  failure.error = -ENOENT;
  const auto missing = netlink_message(NLMSG_ERROR, 7, failure);
  EXPECT_TRUE(read_kernel_reply(missing, 7).is_ours);
  EXPECT_EQ(read_kernel_reply(missing, 7).error, ENOENT);
  for (const auto& whole : {found, missing}) {
    EXPECT_FALSE(read_kernel_reply(whole, 8).is_ours) << "of another question";
    for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
      std::vector<uint8_t> part(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(bytes));
      EXPECT_FALSE(read_kernel_reply(part, 7).is_ours) << bytes;
      // The length that it states goes with it.
      const auto length = static_cast<uint32_t>(bytes);
      if (bytes >= sizeof length) std::memcpy(part.data(), &length, sizeof length);
      EXPECT_FALSE(read_kernel_reply(part, 7).is_ours) << bytes;
    }
    std::vector<uint8_t> other = whole;
    other[offsetof(nlmsghdr, nlmsg_type)] ^= 1;
    EXPECT_FALSE(read_kernel_reply(other, 7).is_ours) << "another kind of message";
  }
}

TEST_F(PeerUserTest, OnlyAnEmptyClosedConnectionIsAProbe) {
  const auto probed = [](const char* sent, bool closes) {
    int ends[2];
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    EXPECT_EQ(::send(ends[1], sent, std::strlen(sent), 0), static_cast<ssize_t>(std::strlen(sent)));
    if (closes) ::shutdown(ends[1], SHUT_WR);
    const bool answer = ended_without_bytes(ends[0]);
    ::close(ends[0]);
    ::close(ends[1]);
    return answer;
  };
  EXPECT_TRUE(probed("", true));
  EXPECT_FALSE(probed("", false));
  EXPECT_FALSE(probed("x", true));
  EXPECT_FALSE(probed("x", false));
}

TEST_F(PeerUserTest, RemoteHostsAreTheirAddress) {
  const auto text = [](const SocketAddress& address) { return address_principal(address.raw).id; };
  EXPECT_EQ(text(loopback_v4(1)), "127.0.0.1");
  EXPECT_EQ(text(loopback_v6(1, true)), "127.0.0.1");
  EXPECT_EQ(text(loopback_v6(1, false)), "::/64");
  EXPECT_EQ(text(fakes::tcp4(0xC0000207, 1)), "192.0.2.7");
  in6_addr host{};
  ASSERT_EQ(::inet_pton(AF_INET6, "2001:db8:1:2:3:4:5:6", &host), 1);
  EXPECT_EQ(text(fakes::tcp6(host, 1)), "2001:db8:1:2::/64");
  EXPECT_FALSE(is_loopback(fakes::tcp6(host, 1).raw));
  EXPECT_FALSE(is_loopback(fakes::tcp4(0x80000001, 1).raw));
  EXPECT_TRUE(is_loopback(fakes::tcp4(0x7FFFFFFF, 1).raw));
  EXPECT_FALSE(is_loopback(fakes::unix_name("/127.0.0.1").raw));
  EXPECT_TRUE(is_loopback(loopback_v6(1, true).raw));
  EXPECT_TRUE(is_loopback(loopback_v6(1, false).raw));
}

// Two processes of this machine that talk through another of its addresses are distinguished by it,
// as hosts are; one that comes from loopback is a user.
TEST_F(PeerUserTest, ConnectionsFromAnotherAddressAreOfTheAddress) {
  const fakes::OwnNetwork network;
  if (!network.fault().empty()) GTEST_SKIP() << network.fault();
  const TestListener listener(fakes::tcp4(kOwnAddress, 0));
  const auto connect_from = [&](in_addr_t host) {
    const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const SocketAddress from = fakes::tcp4(host, 0);
    const SocketAddress to = fakes::tcp4(kOwnAddress, listener.port());
    EXPECT_EQ(::bind(fd, from.get(), from.bytes), 0);
    EXPECT_EQ(::connect(fd, to.get(), to.bytes), 0);
    return fd;
  };
  const int from_address = connect_from(kOwnAddress);
  const Peer host = accepted_by(listener);
  EXPECT_FALSE(host.is_local);
  EXPECT_EQ(host.principal, (Principal{Principal::Kind::kAddress, fakes::kOwnAddressText}));
  const int from_loopback = connect_from(INADDR_LOOPBACK);
  EXPECT_EQ(uid_of(listener), ::getuid());
  ::close(from_address);
  ::close(from_loopback);
}

TEST_F(PeerUserTest, AdmitsAServerOnAnotherMachine) {
  needs_root();
  if (IsSkipped()) return;
  const fakes::OwnNetwork network;
  if (!network.fault().empty()) GTEST_SKIP() << network.fault();
  const ForeignListener listener(fakes::tcp4(kOwnAddress, 0));
  const int fd = connected_to(fakes::tcp4(kOwnAddress, listener.port()));
  EXPECT_TRUE(lookup_.check_server(fd).ok());
  ::close(fd);
}

// An agent that is not root trusts its own user and root.
TEST_F(PeerUserTest, AnotherUserTrustsItsOwnServersAndRoots) {
  needs_root();
  if (IsSkipped()) return;
  const ForeignListener roots(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kAlways, 0);
  const ForeignListener own(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kAlways, kOtherUid);
  const ForeignListener third(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kAlways, kOtherUid - 1);
  const std::string trusted = fakes::as_other_user([&] {
    std::string text;
    for (const ForeignListener* server : {&roots, &own, &third}) {
      PeerLookup lookup;
      const int fd = connected_to(fakes::tcp4(INADDR_LOOPBACK, server->port()));
      text += lookup.check_server(fd).ok() ? "yes " : "no ";
      ::close(fd);
    }
    return text;
  });
  EXPECT_EQ(trusted, "yes yes no ");
}

TEST_F(PeerUserTest, ServerThatClosedHasAnUnknownUser) {
  const ForeignListener listener(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kOnceAndCloses,
                                 ::getuid());
  const int fd = connected_to(fakes::tcp4(INADDR_LOOPBACK, listener.port()));
  while (listener.accepted() == 0) ::usleep(1000);
  const Status served = lookup_.check_server(fd);
  ASSERT_FALSE(served.ok());
  EXPECT_EQ(served.error().code, Code::kPermission);
  EXPECT_EQ(served.error().message.find("is served by an unknown user: "), 0u);
  ::close(fd);
}

// Out of descriptors: the answer is missing, and that is not the peer's fault.
TEST_F(PeerUserTest, OutOfDescriptorsIsOurOwnFault) {
  const TestListener listener(loopback_v4(0));
  const ConnectedUser peer(::getuid(), loopback_v4(listener.port()));
  const int fd = listener.accept();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Result<Peer> without = lookup_.identify(fd);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_FALSE(without.ok());
  EXPECT_EQ(without.code(), Code::kExhausted);
  const Result<Peer> again = lookup_.identify(fd);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->uid, ::getuid());
  ::close(fd);
}

// ---- who serves a connection that this process made

TEST_F(PeerUserTest, ServerOfAnotherUserIsNone) {
  needs_root();
  if (IsSkipped()) return;
  const std::string name = std::string(1, '\0') + "collect_server_" + std::to_string(::getpid());
  for (const Accepts accepts : {Accepts::kNever, Accepts::kAlways, Accepts::kOnce}) {
    const ForeignListener tcp(fakes::tcp4(INADDR_ANY, 0), accepts);
    const ForeignListener both(fakes::tcp6(in6addr_any, 0), accepts);
    const ForeignListener local(fakes::unix_name(name), accepts);
    for (const auto& address :
         {fakes::tcp4(INADDR_LOOPBACK, tcp.port()), fakes::tcp4(INADDR_LOOPBACK, both.port()),
          fakes::unix_name(name)}) {
      const int fd = connected_to(address);
      const Status served = lookup_.check_server(fd);
      ASSERT_FALSE(served.ok());
      EXPECT_EQ(served.error().code, Code::kPermission);
      EXPECT_EQ(served.error().message, "is served by uid 65534, another user");
      ::close(fd);
    }
  }
}

TEST_F(PeerUserTest, KeepsTheUserAfterAServerLeftThePort) {
  needs_root();
  if (IsSkipped()) return;
  const ForeignListener squatter(fakes::tcp4(INADDR_LOOPBACK, 0), Accepts::kOnce);
  const int fd = connected_to(fakes::tcp4(INADDR_LOOPBACK, squatter.port()));
  while (squatter.accepted() == 0) ::usleep(1000);
  const ForeignListener next(fakes::tcp4(INADDR_LOOPBACK, squatter.port()), Accepts::kNever,
                             kOtherUid - 1);
  const Status served = lookup_.check_server(fd);
  ASSERT_FALSE(served.ok());
  EXPECT_EQ(served.error().message, "is served by uid 65534, another user");
  ::close(fd);
}

TEST_F(PeerUserTest, OwnServersAndRootsAreTrusted) {
  const std::string name = std::string(1, '\0') + "collect_server_" + std::to_string(::getpid());
  for (const Accepts accepts : {Accepts::kNever, Accepts::kAlways}) {
    const ForeignListener tcp(fakes::tcp4(INADDR_LOOPBACK, 0), accepts, ::getuid());
    const ForeignListener six(fakes::tcp6(in6addr_any, 0), accepts, ::getuid());
    const ForeignListener local(fakes::unix_name(name), accepts, ::getuid());
    for (const auto& address :
         {fakes::tcp4(INADDR_LOOPBACK, tcp.port()), fakes::tcp4(INADDR_LOOPBACK, six.port()),
          fakes::tcp6(in6addr_loopback, six.port()), fakes::unix_name(name)}) {
      const int fd = connected_to(address);
      const Status served = lookup_.check_server(fd);
      EXPECT_TRUE(served.ok()) << to_string(served.error());
      ::close(fd);
    }
  }
}

// Socket activation: root listens, and a service with a user of its own accepts.
TEST_F(PeerUserTest, ServiceThatRootListensForIsTrusted) {
  needs_root();
  if (IsSkipped()) return;
  const TestListener listener(loopback_v4(0));
  const int fd = connected_to(loopback_v4(listener.port()));
  const fakes::HeldByOtherUser service([&](const fakes::HeldByOtherUser::Hold& hold) {
    if (listener.accept() >= 0) hold();
  });
  const Status served = lookup_.check_server(fd);
  EXPECT_TRUE(served.ok()) << to_string(served.error());
  ::close(fd);
}

TEST_F(PeerUserTest, TrustsASocketInAPrivateDirectory) {
  needs_root();
  if (IsSkipped()) return;
  const auto serves = [this](const std::string& directory, uid_t owner = kOtherUid) {
    const std::string path = directory + "/control";
    EXPECT_EQ(::chown(directory.c_str(), kOtherUid, kOtherUid), 0);
    const ForeignListener listener(fakes::unix_name(path));
    EXPECT_EQ(::chown(directory.c_str(), owner, owner), 0);
    const int fd = connected_to(fakes::unix_name(path));
    const bool trusted = lookup_.check_server(fd, path).ok();
    ::close(fd);
    ::unlink(path.c_str());
    ::rmdir(directory.c_str());
    return trusted;
  };
  std::string shared = "/tmp/collect_server_XXXXXX";
  ASSERT_NE(::mkdtemp(shared.data()), nullptr);
  EXPECT_FALSE(serves(shared)) << "everybody can make such a directory";
  std::string service = "/run/collect_server_XXXXXX";
  if (::mkdtemp(service.data()) == nullptr) GTEST_SKIP() << "/run can't be written";
  EXPECT_TRUE(serves(service));
  ASSERT_EQ(::mkdir(service.c_str(), 0700), 0);
  EXPECT_FALSE(serves(service, kOtherUid - 1)) << "it is a third user's";
  ASSERT_EQ(::mkdir(service.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(service.c_str(), 0770), 0);
  EXPECT_FALSE(serves(service)) << "a group can put another socket there";
}

}  // namespace
}  // namespace collect::principal
