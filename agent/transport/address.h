// Where a collector is, or where the agent waits for one. Parsed and resolved once, on the thread
// that starts the agent: a name other than localhost asks the system's resolver, which may
// allocate.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>

namespace collect::agent {

inline constexpr uint32_t kMaxAddresses = 16;  // of one name, of a port range, of a list in all

struct Address {
  sockaddr_storage storage;
  socklen_t bytes;
  bool is_local() const { return storage.ss_family == AF_UNIX; }
};

struct AddressList {
  Address items[kMaxAddresses];
  uint32_t count;
};

// "host:port", "[v6]:port", "unix:/path", "abstract:name", as formats/core/address.h has them.
// Returns null, or a static sentence.
const char* resolve_connect(const char* text, AddressList& out);
// Whether that sentence says that no one knows the name now: the text itself is an address.
bool is_unknown_name(const char* sentence);
// "tls://" before "host:port": connected to with TLS.
bool is_tls(const char* text);
const char* after_tls(const char* text);  // the address itself
// The host alone, without brackets. `out` has room for the whole text. Null, or a static sentence.
const char* host_of_tls(const char* text, char* out);
// "tcp:port" and "tcp:first-last" on loopback (0: any free port), "unix:/path", "abstract:name";
// "abstract:" alone means collect_agent_<pid>. Of several, the first free one is used.
const char* resolve_listen(const char* text, AddressList& out);

// Host byte order to network byte order, and back. The compiler's own: htons() is a function of
// some C libraries, whose place another library may have taken.
constexpr uint16_t network_order(uint16_t value) {
  return __builtin_bswap16(value);
}
constexpr uint32_t network_order(uint32_t value) {
  return __builtin_bswap32(value);
}
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

// Port of an internet address; 0 of any other.
uint16_t port_of(const Address& address);

}  // namespace collect::agent
