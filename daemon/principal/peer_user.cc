#include "daemon/principal/peer_user.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>

namespace collect::principal {
namespace {

#if defined(__linux__)
constexpr bool kSaysWhoHoldsTcp = true;
#else
constexpr bool kSaysWhoHoldsTcp = false;
#endif

constexpr char kClosed[] =
    "the peer closed before its owner could be asked, or it is in another network namespace";
constexpr uint32_t kOverflowUid = 65'534;  // what Linux shows for a user without a number here

template <class Raw>
Raw as(const sockaddr_storage& address) {
  static_assert(sizeof(Raw) <= sizeof(sockaddr_storage));
  Raw raw{};
  std::memcpy(&raw, &address, sizeof raw);
  return raw;
}

// IPv4 addresses within IPv6 become IPv4 ones: the kernel keeps such sockets among those of IPv4.
sockaddr_storage unmapped(const sockaddr_storage& address) {
  if (address.ss_family != AF_INET6) return address;
  const auto v6 = as<sockaddr_in6>(address);
  if (!IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return address;
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
  sockaddr_storage out{};
  std::memcpy(&out, &v4, sizeof v4);
  return out;
}

Peer unknown_peer(std::string why) {
  Peer peer;
  peer.is_local = true;
  peer.unknown = std::move(why);
  return peer;
}

Result<Peer> unknown_or_exhausted(const Error& error) {
  if (error.code == Code::kExhausted) return error;
  return unknown_peer(error.message);
}

uint16_t port_of(const sockaddr_storage& address) {
  // At the same place in sockaddr_in.
  return ntohs(as<sockaddr_in6>(address).sin6_port);
}

// Whether every directory above the socket at `path` belongs to root or `uid`, and no one else can
// write it.
bool is_out_of_reach(const std::string& path, uid_t uid) {
  if (!path.starts_with('/')) return false;
  for (size_t slash = 0; slash != std::string::npos; slash = path.find('/', slash + 1)) {
    struct stat directory{};
    if (::stat(path.substr(0, slash + 1).c_str(), &directory) != 0) return false;
    if (directory.st_uid != 0 && directory.st_uid != uid) return false;
    if ((directory.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  }
  return true;
}

#if defined(__linux__)

bool is_overflow_uid_ours() {
  static const bool answer = [] {
    std::ifstream map("/proc/self/uid_map");
    return maps_every_user({std::istreambuf_iterator<char>(map), {}});
  }();
  return answer;
}

// Who connected, or, asked by who connected, who listens.
Result<Peer> unix_peer(int connected) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) {
    return unknown_peer(std::strerror(errno));
  }
  if (peer.uid == static_cast<uid_t>(-1)) return unknown_peer(kClosed);
  return local_peer(peer.uid, is_overflow_uid_ours());
}

#else

Result<Peer> unix_peer(int connected) {
  uid_t user = 0;
  gid_t group = 0;
  if (::getpeereid(connected, &user, &group) != 0) return unknown_peer(std::strerror(errno));
  return local_peer(user, true);
}

#endif

}  // namespace

bool is_loopback(const sockaddr_storage& given) {
  const sockaddr_storage address = unmapped(given);
  if (address.ss_family == AF_INET) {
    return (ntohl(as<sockaddr_in>(address).sin_addr.s_addr) >> 24) == 127;
  }
  const auto v6 = as<sockaddr_in6>(address);
  return address.ss_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

bool ended_without_bytes(int connected) {
  char byte = 0;
  return ::recv(connected, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

Principal address_principal(const sockaddr_storage& given) {
  const sockaddr_storage address = unmapped(given);
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto v4 = as<sockaddr_in>(address);
    ::inet_ntop(AF_INET, &v4.sin_addr, text, sizeof text);
    return {Principal::Kind::kAddress, text};
  }
  auto v6 = as<sockaddr_in6>(address);
  std::memset(v6.sin6_addr.s6_addr + 8, 0, 8);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof text);
  return {Principal::Kind::kAddress, std::string(text) + "/64"};
}

Peer local_peer(uid_t uid, bool is_overflow_uid_ours) {
  if (uid == kOverflowUid && !is_overflow_uid_ours) {
    return unknown_peer("its user has no number in this user namespace");
  }
  Peer peer;
  peer.is_local = true;
  peer.uid = uid;
  peer.principal = Principal::of_uid(uid);
  return peer;
}

bool maps_every_user(const std::string& uid_map) {
  std::istringstream first_line(uid_map);
  uint64_t inside{};
  uint64_t outside{};
  uint64_t count{};  // stays so where the map is empty
  first_line >> inside >> outside >> count;
  return inside == 0 && outside == 0 && count >= UINT32_MAX;
}

Error no_answer(int error) {
  if (error == ENOENT) return {Code::kNotFound, kClosed};
  const bool is_our_shortage =
      errno_error(error, "").code == Code::kExhausted || error == EAGAIN || error == EINTR;
  return {is_our_shortage ? Code::kExhausted : Code::kUnsupported,
          std::string("the system does not say who holds it: ") + std::strerror(error)};
}

bool has_owner(const SocketAnswer& answer, uint16_t port, uint16_t peer_port) {
  return is_held(answer) && answer.port == port && answer.peer_port == peer_port;
}

PeerLookup::~PeerLookup() {
  if (netlink_ >= 0) ::close(netlink_);
}

struct PeerLookup::Ends {
  sockaddr_storage here;
  sockaddr_storage there;
  bool is_closed;  // `there` is not known any more
};

Result<PeerLookup::Ends> PeerLookup::ends_of(int connected) {
  Ends ends{};
  socklen_t here = sizeof ends.here;
  socklen_t there = sizeof ends.there;
  if (::getsockname(connected, reinterpret_cast<sockaddr*>(&ends.here), &here) != 0) {
    return errno_error(errno, "getsockname");
  }
  ends.is_closed = ::getpeername(connected, reinterpret_cast<sockaddr*>(&ends.there), &there) != 0;
  ends.here = unmapped(ends.here);
  ends.there = unmapped(ends.there);
  return ends;
}

Result<Peer> PeerLookup::identify(int connected) {
  const Result<Ends> ends = ends_of(connected);
  if (!ends.ok()) return ends.error();
  if (ends->here.ss_family == AF_UNIX) return unix_peer(connected);
  if (ends->is_closed) return unknown_peer(kClosed);
  if (!is_loopback(ends->here) && !is_loopback(ends->there)) {
    Peer peer;
    peer.principal = address_principal(ends->there);
    return peer;
  }
  const Result<SocketAnswer> answer = ask_kernel(ends->there, &ends->here);
  if (!answer.ok()) return unknown_or_exhausted(answer.error());
  if (!has_owner(*answer, port_of(ends->there), port_of(ends->here))) return unknown_peer(kClosed);
  return local_peer(answer->uid, is_overflow_uid_ours());
}

// The listener is asked for first: a connection that still waits to be accepted afterwards waits at
// that one, and not at one that has taken the port since.
Result<Peer> PeerLookup::identify_server(const sockaddr_storage& here,
                                         const sockaddr_storage& there) {
  const Result<SocketAnswer> listener = ask_kernel(there, nullptr);
  const Result<SocketAnswer> accepted = ask_kernel(there, &here);
  if (!accepted.ok()) return unknown_or_exhausted(accepted.error());
  if (accepted->peer_port != port_of(here))
    return unknown_peer(kClosed);  // only a listener is left
  const bool listens = listener.ok() && listener->state == TCP_LISTEN && listener->inode != 0 &&
                       listener->port == port_of(there);
  // Socket activation: root listens, and a service with a user of its own accepts.
  const bool is_handed_over = listens && listener->uid == 0;
  if (accepted->inode != 0 && !is_handed_over) {
    return local_peer(accepted->uid, is_overflow_uid_ours());
  }
  // No one holds it: it waits for the listener, or was closed, and then no one reads from it.
  if (listens) return local_peer(listener->uid, is_overflow_uid_ours());
  return listener.ok() ? unknown_peer(kClosed) : unknown_or_exhausted(listener.error());
}

Status PeerLookup::check_server(int connected, const std::string& path) {
  const Result<Ends> ends = ends_of(connected);
  if (!ends.ok()) return ends.error();
  const bool is_unix = ends->here.ss_family == AF_UNIX;
  if (!is_unix && !ends->is_closed && !is_loopback(ends->here) && !is_loopback(ends->there)) {
    return {};
  }
  if (!is_unix && !kSaysWhoHoldsTcp) return {};
  Result<Peer> server = unknown_peer(kClosed);
  if (is_unix) {
    server = unix_peer(connected);
  } else if (!ends->is_closed) {
    server = identify_server(ends->here, ends->there);
  }
  if (!server.ok()) return server.error();
  const bool is_known = server->unknown.empty();
  if (is_unix && is_out_of_reach(path, is_known ? server->uid : kOverflowUid)) return {};
  if (!is_known) {
    return Error{Code::kPermission, "is served by an unknown user: " + server->unknown};
  }
  if (server->uid == 0 || server->uid == ::geteuid()) return {};
  return Error{Code::kPermission, fmt::format("is served by uid {}, another user", server->uid)};
}

#if defined(__linux__)

Result<SocketAnswer> PeerLookup::ask_kernel(const sockaddr_storage& own,
                                            const sockaddr_storage* other) {
  if (netlink_ < 0) {
    netlink_ = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    if (netlink_ < 0) return no_answer(errno);
  }
  DiagQuestion question;
  if (!make_diag_question(own, other, ++sequence_, question)) return no_answer(EAFNOSUPPORT);
  uint8_t bytes[1024];
  KernelReply reply;
  // The kernel answers within send(); what is there before is of a question that failed.
  ssize_t got = ::send(netlink_, &question, sizeof question, 0);
  while (got >= 0 && !reply.is_ours) {
    got = ::recv(netlink_, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got >= 0) reply = read_kernel_reply({bytes, static_cast<size_t>(got)}, sequence_);
  }
  if (got < 0) reply.error = errno;
  if (reply.error == 0) return reply.socket;
  const Error error = no_answer(reply.error);
  if (error.code == Code::kExhausted) {
    ::close(netlink_);
    netlink_ = -1;
  }
  return error;
}

#else

Result<SocketAnswer> PeerLookup::ask_kernel(const sockaddr_storage&, const sockaddr_storage*) {
  return Error{Code::kUnsupported, "this system does not say who holds a TCP connection"};
}

#endif

}  // namespace collect::principal
