#include "agent/transport/address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "agent/platform/system.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

constexpr char kTlsPrefix[] = "tls://";
constexpr char kNameNotKnown[] = "the host's name is not known";
constexpr char kNameWithoutAddress[] = "the host's name has no address";

// The rest of `text` after `prefix`, or null.
const char* after(const char* text, const char* prefix) {
  const size_t length = std::strlen(prefix);
  return std::strncmp(text, prefix, length) == 0 ? text + length : nullptr;
}

// Reads digits up to `end` (or the string's end); false unless they are a port.
bool parse_port(const char* text, const char* end, uint16_t& port) {
  uint32_t value = 0;
  const char* at = text;
  for (; *at != '\0' && at != end; ++at) {
    if (*at < '0' || *at > '9') return false;
    value = value * 10 + static_cast<uint32_t>(*at - '0');
    if (value > 65535) return false;
  }
  port = static_cast<uint16_t>(value);
  return at != text;
}

void set_v4(Address& address, uint32_t host_order, uint16_t port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = network_order(port);
  in.sin_addr.s_addr = network_order(host_order);
  address = Address{};
  std::memcpy(&address.storage, &in, sizeof in);
  address.bytes = sizeof in;
}

void set_v6(Address& address, const in6_addr& host, uint16_t port) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = network_order(port);
  in.sin6_addr = host;
  address = Address{};
  std::memcpy(&address.storage, &in, sizeof in);
  address.bytes = sizeof in;
}

// `name_offset` is 1 for abstract names, which begin with a zero byte and end where the length
// says.
const char* set_unix(const char* name, size_t name_offset, AddressList& out) {
  sockaddr_un un{};
  un.sun_family = AF_UNIX;
  const size_t length = std::strlen(name);
  if (length == 0) return "the Unix socket has no name";
  if (name_offset == 0 && *name != '/') return "a Unix socket's path begins with /";
  if (name_offset + length + 1 > sizeof un.sun_path) return "the Unix socket's name is too long";
  std::memcpy(un.sun_path + name_offset, name, length);
  Address& address = out.items[0];
  address = Address{};
  std::memcpy(&address.storage, &un, sizeof un);
  address.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length + 1);
  out.count = 1;
  return nullptr;
}

const char* set_abstract(const char* name, AddressList& out) {
#if defined(__linux__)
  char own_name[64];
  if (*name == '\0') {
    Text(own_name, sizeof own_name)
        .add("collect_agent_")
        .number(static_cast<uint64_t>(sys::getpid()));
    name = own_name;
  }
  return set_unix(name, 1, out);
#else
  (void)name;
  (void)out;
  return "abstract sockets exist on Linux and Android only";
#endif
}

const char* ask_resolver(const char* host, uint16_t port, AddressList& out) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host, nullptr, &hints, &found) != 0) return kNameNotKnown;
  for (const addrinfo* entry = found; entry != nullptr && out.count < kMaxAddresses;
       entry = entry->ai_next) {
    if (entry->ai_family == AF_INET) {
      sockaddr_in in;
      std::memcpy(&in, entry->ai_addr, sizeof in);
      set_v4(out.items[out.count++], network_order(in.sin_addr.s_addr), port);
    } else if (entry->ai_family == AF_INET6) {
      sockaddr_in6 in;
      std::memcpy(&in, entry->ai_addr, sizeof in);
      set_v6(out.items[out.count++], in.sin6_addr, port);
    }
  }
  freeaddrinfo(found);
  return out.count != 0 ? nullptr : kNameWithoutAddress;
}

const char* set_host(const char* host, uint16_t port, AddressList& out) {
  if (std::strcmp(host, "localhost") == 0) {
    set_v4(out.items[0], INADDR_LOOPBACK, port);
    constexpr in6_addr kLoopback = IN6ADDR_LOOPBACK_INIT;
    set_v6(out.items[1], kLoopback, port);
    out.count = 2;
    return nullptr;
  }
  in_addr v4;
  in6_addr v6;
  if (inet_pton(AF_INET, host, &v4) == 1) {
    set_v4(out.items[out.count++], network_order(v4.s_addr), port);
    return nullptr;
  }
  if (inet_pton(AF_INET6, host, &v6) == 1) {
    set_v6(out.items[out.count++], v6, port);
    return nullptr;
  }
  return ask_resolver(host, port, out);
}

}  // namespace

const char* resolve_connect(const char* text, AddressList& out) {
  out.count = 0;
  if (const char* path = after(text, "unix:")) return set_unix(path, 0, out);
  if (const char* name = after(text, "abstract:")) {
    return *name == '\0' ? "the Unix socket has no name" : set_abstract(name, out);
  }
  uint16_t port = 0;
  if (const char* digits = after(text, "tcp:")) {
    if (!parse_port(digits, nullptr, port) || port == 0) return "behind tcp: is one port";
    return set_host("127.0.0.1", port, out);
  }
  const char* colon = std::strrchr(text, ':');
  if (colon == nullptr || !parse_port(colon + 1, nullptr, port) || port == 0) {
    return "the address is not host:port, unix:/path or abstract:name";
  }
  const char* begin = text;
  const char* end = colon;
  if (*begin == '[' && end > begin + 1 && end[-1] == ']') {
    ++begin;
    --end;
  } else if (std::memchr(text, ':', static_cast<size_t>(colon - text)) != nullptr) {
    return "a number of IPv6 is in brackets";
  }
  char host[256];
  const auto length = static_cast<size_t>(end - begin);
  if (length == 0 || length >= sizeof host) return "the address has no host, or one too long";
  std::memcpy(host, begin, length);
  host[length] = '\0';
  return set_host(host, port, out);
}

bool is_unknown_name(const char* sentence) {
  return sentence == kNameNotKnown || sentence == kNameWithoutAddress;
}

bool is_tls(const char* text) {
  return after(text, kTlsPrefix) != nullptr;
}

const char* after_tls(const char* text) {
  const char* const rest = after(text, kTlsPrefix);
  return rest == nullptr ? text : rest;
}

const char* host_of_tls(const char* text, char* out) {
  const char* begin = after_tls(text);
  const char* end = std::strrchr(begin, ':');
  if (end == nullptr || after(begin, "unix:") != nullptr || after(begin, "abstract:") != nullptr) {
    return "an address with TLS is tls://host:port";
  }
  if (*begin == '[' && end > begin + 1 && end[-1] == ']') {
    ++begin;
    --end;
  }
  const auto length = static_cast<size_t>(end - begin);
  std::memcpy(out, begin, length);
  out[length] = '\0';
  return nullptr;
}

const char* resolve_listen(const char* text, AddressList& out) {
  out.count = 0;
  if (const char* path = after(text, "unix:")) return set_unix(path, 0, out);
  if (const char* name = after(text, "abstract:")) return set_abstract(name, out);
  const char* ports = after(text, "tcp:");
  if (ports == nullptr) return "the address is not tcp:port, unix:/path or abstract:name";
  const char* dash = std::strchr(ports, '-');
  uint16_t first = 0;
  uint16_t last = 0;
  if (!parse_port(ports, dash, first)) return "tcp: needs a port number";
  last = first;
  if (dash != nullptr && (!parse_port(dash + 1, nullptr, last) || last < first)) {
    return "tcp: needs a port number, or first-last";
  }
  if (last - first >= static_cast<int>(kMaxAddresses)) return "a range has at most 16 ports";
  for (uint32_t port = first; port <= last; ++port) {
    set_v4(out.items[out.count++], INADDR_LOOPBACK, static_cast<uint16_t>(port));
  }
  return nullptr;
}

uint16_t port_of(const Address& address) {
  if (address.storage.ss_family == AF_INET) {
    sockaddr_in in;
    std::memcpy(&in, &address.storage, sizeof in);
    return network_order(in.sin_port);
  }
  if (address.storage.ss_family == AF_INET6) {
    sockaddr_in6 in;
    std::memcpy(&in, &address.storage, sizeof in);
    return network_order(in.sin6_port);
  }
  return 0;
}

}  // namespace collect::agent
