// The agent without TLS.
#include "agent/transport/tls.h"

namespace collect::agent {

const char* tls_prepare(const TlsFiles&) {
  return "this agent has no TLS; libcollect_agent_tls.so has (build with -DCOLLECT_AGENT_TLS=ON)";
}

TlsSession* tls_open(int, const char*) {
  return nullptr;
}
void tls_close(TlsSession*) {}
IoResult tls_send(TlsSession*, const iovec*, size_t) {
  return {IoStatus::kError};
}
IoResult tls_receive(TlsSession*, uint8_t*, size_t) {
  return {IoStatus::kError};
}
short tls_poll_events(const TlsSession*, short events) {
  return events;
}
const char* tls_fault(const TlsSession*) {
  return nullptr;
}

}  // namespace collect::agent
