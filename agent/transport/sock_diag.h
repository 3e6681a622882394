// Who holds a TCP socket of this machine: the question to the Linux kernel and its answer, as
// sock_diag(7) over netlink(7) has them. Bytes alone, and nothing allocates: the daemon asks by it
// too.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "formats/core/bytes.h"

#if defined(__linux__)
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#endif

namespace collect {

// What the kernel says about a socket. Ports in host order.
struct SocketAnswer {
  uint8_t state;
  uint32_t inode;
  uint32_t uid;
  uint16_t port;
  uint16_t peer_port;
};

// A socket that was closed is kept by the kernel for a while, without an owner, and then shows
// uid 0.
inline bool is_held(const SocketAnswer& socket) {
  return socket.inode != 0 && (socket.state == TCP_ESTABLISHED || socket.state == TCP_FIN_WAIT1 ||
                               socket.state == TCP_FIN_WAIT2 || socket.state == TCP_CLOSE_WAIT);
}

#if defined(__linux__)

// To host order. ntohs() is a function of libc, which the agent does not call.
constexpr uint16_t port_of_diag(uint16_t port) {
  return std::endian::native == std::endian::little ? __builtin_bswap16(port) : port;
}

struct DiagQuestion {
  nlmsghdr header;
  inet_diag_req_v2 body;
};

struct KernelReply {
  bool is_ours = false;  // else it is about another question, or no whole message
  int error = 0;         // errno, when there is no socket
  SocketAnswer socket{};
};

// An IPv4 address within IPv6 counts as IPv4: the kernel keeps such sockets there. False: no IP
// address.
inline bool put_diag_address(const sockaddr_storage& address, uint8_t& family, __be32* words,
                             __be16& port) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    family = AF_INET;
    words[0] = v4.sin_addr.s_addr;
    port = v4.sin_port;
    return true;
  }
  if (address.ss_family != AF_INET6) return false;
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof v6);
  port = v6.sin6_port;
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    family = AF_INET;
    std::memcpy(words, v6.sin6_addr.s6_addr + 12, 4);
  } else {
    family = AF_INET6;
    std::memcpy(words, v6.sin6_addr.s6_addr, 16);
  }
  return true;
}

// The socket whose own address is `own`, and whose peer is `other`; null: one that listens. False:
// these are no IP addresses.
inline bool make_diag_question(const sockaddr_storage& own, const sockaddr_storage* other,
                               uint32_t sequence, DiagQuestion& question) {
  question = {};
  question.header.nlmsg_len = sizeof question;
  question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  question.header.nlmsg_flags = NLM_F_REQUEST;
  question.header.nlmsg_seq = sequence;
  inet_diag_req_v2& body = question.body;
  body.sdiag_protocol = IPPROTO_TCP;
  body.idiag_states = ~0u;
  body.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
  body.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
  uint8_t& family = body.sdiag_family;
  return put_diag_address(own, family, body.id.idiag_src, body.id.idiag_sport) &&
         (other == nullptr ||
          put_diag_address(*other, family, body.id.idiag_dst, body.id.idiag_dport));
}

// One message of the kernel, as an answer to the question `sequence`.
inline KernelReply read_kernel_reply(Bytes bytes, uint32_t sequence) {
  KernelReply reply;
  nlmsghdr header{};
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof header));
  if (header.nlmsg_seq != sequence || header.nlmsg_len > bytes.size()) return reply;
  const Bytes message = bytes.first(header.nlmsg_len);
  const Bytes body = message.subspan(std::min(message.size(), sizeof header));
  nlmsgerr failure{};
  inet_diag_msg socket{};
  if (header.nlmsg_type == NLMSG_ERROR && body.size() >= sizeof failure) {
    std::memcpy(&failure, body.data(), sizeof failure);
    reply.is_ours = true;
    reply.error = -failure.error;
  } else if (header.nlmsg_type == SOCK_DIAG_BY_FAMILY && body.size() >= sizeof socket) {
    std::memcpy(&socket, body.data(), sizeof socket);
    reply.is_ours = true;
    reply.socket = {socket.idiag_state, socket.idiag_inode, socket.idiag_uid,
                    port_of_diag(socket.id.idiag_sport), port_of_diag(socket.id.idiag_dport)};
  }
  return reply;
}

#endif

}  // namespace collect
