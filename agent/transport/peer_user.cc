#include "agent/transport/peer_user.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/transport/address.h"
#include "agent/transport/descriptor.h"

#if defined(__linux__)
#include "agent/transport/sock_diag.h"
#endif

namespace collect::agent {
namespace {

PeerUser judge(uid_t uid) {
#if defined(__ANDROID__)
  constexpr uid_t kAndroidShell = 2000;
  if (uid == kAndroidShell) return PeerUser::kTrusted;
#endif
  return uid == 0 || uid == sys::geteuid() ? PeerUser::kTrusted : PeerUser::kOther;
}

#if defined(__linux__)

struct Answer {
  PeerUser fault;  // kTrusted: there is one
  SocketAnswer socket;
};

Answer ask(const sockaddr_storage& own, const sockaddr_storage* other) {
  Answer answer{PeerUser::kUnknown, {}};
  DiagQuestion question;
  if (!make_diag_question(own, other, 1, question)) return answer;
  Descriptor netlink;
  const int error =
      netlink.open([] { return sys::socket(AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG); });
  if (error == EMFILE || error == ENFILE) answer.fault = PeerUser::kNotAsked;
  if (error == EPROTONOSUPPORT || error == EAFNOSUPPORT) answer.fault = PeerUser::kCannotAsk;
  if (error != 0) return answer;
  uint8_t bytes[512];
  ssize_t got = -1;
  if (sys::send(netlink.fd(), &question, sizeof question, 0) >= 0) {
    got = sys::recv(netlink.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
  }
  netlink.close();
  if (got < 0) return answer;
  const KernelReply reply = read_kernel_reply({bytes, static_cast<size_t>(got)}, 1);
  const inet_diag_sockid& wanted = question.body.id;
  if (reply.is_ours && reply.error == 0 && reply.socket.port == port_of_diag(wanted.idiag_sport) &&
      reply.socket.peer_port == port_of_diag(wanted.idiag_dport)) {
    answer = {PeerUser::kTrusted, reply.socket};
  }
  return answer;
}

PeerUser tcp_peer(const sockaddr_storage& here, const sockaddr_storage& there) {
  const Answer peer = ask(there, &here);
  if (peer.fault != PeerUser::kTrusted) return peer.fault;
  return is_held(peer.socket) ? judge(peer.socket.uid) : PeerUser::kUnknown;
}

// The listener is asked for first: a connection that still waits to be accepted afterwards waits at
// that one, and not at one that has taken the port since.
Server tcp_server(const sockaddr_storage& here, const sockaddr_storage& there) {
  const Answer listener = ask(there, nullptr);
  const Answer peer = ask(there, &here);
  if (listener.fault == PeerUser::kNotAsked) return {PeerUser::kNotAsked, 0};
  if (peer.fault != PeerUser::kTrusted) return {peer.fault, 0};
  const bool listens = listener.fault == PeerUser::kTrusted &&
                       listener.socket.state == TCP_LISTEN && listener.socket.inode != 0;
  const uid_t listener_uid = listener.socket.uid;
  if (peer.socket.inode != 0) {
    const uid_t uid = peer.socket.uid;
    // Socket activation: root listens, and a service with a user of its own accepts.
    const bool is_handed_over = listens && listener_uid == 0;
    return {is_handed_over ? PeerUser::kTrusted : judge(uid), uid};
  }
  // No one holds it: it waits for the listener, or was closed, and then no one reads from it.
  if (!listens) return {PeerUser::kUnknown, 0};
  return {judge(listener_uid), listener_uid};
}

// What a Unix socket says: who connected, or who listens.
bool unix_owner(int connected, uid_t& uid) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  if (sys::getsockopt(connected, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0) return false;
  uid = peer.uid;
  return true;
}

#else

PeerUser tcp_peer(const sockaddr_storage&, const sockaddr_storage&) {
  return PeerUser::kCannotAsk;
}

Server tcp_server(const sockaddr_storage&, const sockaddr_storage&) {
  return {PeerUser::kCannotAsk, 0};
}

bool unix_owner(int connected, uid_t& uid) {
  gid_t group = 0;
  return getpeereid(connected, &uid, &group) == 0;
}

#endif

// Both ends of a connection; false: it has none any more.
struct Ends {
  sockaddr_storage here;
  sockaddr_storage there;
};
bool ends_of(int connected, Ends& ends) {
  ends = {};
  socklen_t here_bytes = sizeof ends.here;
  socklen_t there_bytes = sizeof ends.there;
  return sys::getsockname(connected, reinterpret_cast<sockaddr*>(&ends.here), &here_bytes) == 0 &&
         sys::getpeername(connected, reinterpret_cast<sockaddr*>(&ends.there), &there_bytes) == 0;
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&address);
    return (network_order(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&address);
  if (address.ss_family != AF_INET6) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) return v6->sin6_addr.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

// Whether every directory above the socket belongs to root or `uid`, and no one else can write it.
// The name is the one that was dialled: the listener's own may mean another file here.
bool is_out_of_reach(const Address& dialled, uid_t uid) {
  sockaddr_un local{};
  std::memcpy(&local, &dialled.storage, sizeof local);
  char path[sizeof local.sun_path + 1] = {};
  std::memcpy(path, local.sun_path, sizeof local.sun_path);
  if (path[0] != '/') return false;
  for (size_t i = 0; path[i] != '\0'; ++i) {
    if (path[i] != '/') continue;
    const char next = path[i + 1];
    path[i + 1] = '\0';
    struct stat directory{};
    const bool is_kept = sys::stat(path, &directory) == 0 &&
                         (directory.st_uid == 0 || directory.st_uid == uid) &&
                         (directory.st_mode & (S_IWGRP | S_IWOTH)) == 0;
    path[i + 1] = next;
    if (!is_kept) return false;
  }
  return true;
}

}  // namespace

PeerUser peer_user(int connected) {
  Ends ends;
  if (!ends_of(connected, ends)) return PeerUser::kUnknown;
  if (ends.here.ss_family != AF_UNIX) return tcp_peer(ends.here, ends.there);
  uid_t uid = 0;
  return unix_owner(connected, uid) ? judge(uid) : PeerUser::kUnknown;
}

Server server_user(int connected, const Address& dialled) {
  Ends ends;
  if (!ends_of(connected, ends)) return {PeerUser::kUnknown, 0};
  if (ends.here.ss_family != AF_UNIX) {
    const bool is_here = is_loopback(ends.here) || is_loopback(ends.there);
    return is_here ? tcp_server(ends.here, ends.there) : Server{PeerUser::kTrusted, 0};
  }
  uid_t uid = 0;
  if (!unix_owner(connected, uid)) return {PeerUser::kUnknown, 0};
  return {is_out_of_reach(dialled, uid) ? PeerUser::kTrusted : judge(uid), uid};
}

}  // namespace collect::agent
