// What ingest is informed when it starts. Limits that no one needs to change are in limits.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "daemon/ingest/link/address.h"
#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/link/tls_context.h"
#include "daemon/principal/local_access.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

struct IngestOptions {
  std::string listen = "127.0.0.1:7710";
  int listening = -1;                     // a socket that is used instead of `listen`; to own
  std::vector<std::string> attach;        // addresses of agents that listen
  std::string token;                      // empty: none is asked for
  std::string guest_token;                // lets those in whom local_access keeps out; empty: none
  std::shared_ptr<const TlsContext> tls;  // null: TCP is plain, and loopback only
  principal::LocalAccess local_access;    // of this machine's users, those who may connect
  std::string version;                    // "collectord 0.1.0": what agents see and log
  milliseconds heartbeat = kDefaultHeartbeat;
  milliseconds resume = kDefaultResume;
  uint32_t max_connections = kDefaultMaxConnections;
  uint32_t connections_per_address = kDefaultConnectionsPerAddress;
  uint32_t threads_per_agent = kDefaultThreadsPerAgent;
  uint32_t sessions_per_agent = kDefaultSessionsPerAgent;
  bool seal_at_stop = false;  // no one continues with the sessions after stop()
  bool page_codecs = true;    // agents may encode pages for the way
  // What all principals together may use.
  uint64_t descriptors = 0;  // 0: what the system's limit leaves
  uint64_t max_sessions = kMaxUnsealedSessions;
  uint64_t accounted_memory = kMaxAccountedMemory;
  uint64_t unsealed_files = kMaxUnsealedFiles;
  double stream_opens_per_second = kStreamOpensPerSecond;
  double stream_opens_at_once = kStreamOpensAtOnce;
  // No threads: all of it happens within Ingest::step(). For simulations, whose clocks are not
  // real.
  bool stepped = false;
  unsigned io_threads = 0;    // 0: one per core, at most kMaxIoThreads
  unsigned data_threads = 0;  // 0: one per core, at most kMaxDataThreads
  storage::SessionOptions storage;
};

}  // namespace collect::ingest
