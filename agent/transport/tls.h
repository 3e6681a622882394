// TLS below a socket of the agent, as a client. Two files implement it, and the library decides
// which is linked: tls_openssl.cc, with an OpenSSL of its own inside, or tls_absent.cc.
//
// The first function belongs to the thread that starts the agent, the others to the drain thread.
// No memory of the program's is used: OpenSSL gets its own from a fixed arena (tls_arena.h).
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

#include "agent/transport/io_result.h"

namespace collect::agent {

inline constexpr size_t kMaxTlsSessions = 2;  // one for each channel

// Paths of PEM files; `certificate` and `key` may be empty.
struct TlsFiles {
  const char* ca;
  const char* certificate;
  const char* key;
};

struct TlsSession;

// Reads the files, once in the life of a process. Null, or a static sentence.
const char* tls_prepare(const TlsFiles& files);

// The collector's certificate must be signed by the CA and be for `host`, a name or an IP address.
// Null when there is no place or no memory.
TlsSession* tls_open(int fd, const char* host);
void tls_close(TlsSession* session);  // says nothing to the peer: a forked child does it too
IoResult tls_send(TlsSession* session, const iovec* parts, size_t count);
IoResult tls_receive(TlsSession* session, uint8_t* out, size_t size);
// What to wait for, where the caller would wait for `events`.
short tls_poll_events(const TlsSession* session, short events);
// Why the last operation failed, static; null when TLS was not the reason.
const char* tls_fault(const TlsSession* session);

}  // namespace collect::agent
