// What ingest is told when it starts. Limits that nobody needs to change are in limits.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/ingest/address.h"
#include "daemon/ingest/limits.h"
#include "storage/session_types.h"

namespace collect::ingest {

struct IngestOptions {
  std::string listen = "127.0.0.1:7710";
  std::vector<std::string> attach;  // addresses of agents that listen
  std::string token;                // empty: none is asked for
  std::string version;              // "collectord 0.1.0": what agents see and log
  milliseconds heartbeat = kDefaultHeartbeat;
  milliseconds resume = kDefaultResume;
  uint32_t max_connections = kDefaultMaxConnections;
  uint32_t threads_per_agent = kDefaultThreadsPerAgent;
  uint32_t sessions_per_agent = kDefaultSessionsPerAgent;
  size_t queue_bytes = kDefaultQueueBytes;
  unsigned io_threads = 0;      // 0: one per core, at most kMaxIoThreads
  unsigned writer_threads = 0;  // 0: one per core, at most kMaxWriterThreads
  storage::SessionOptions storage;
};

}  // namespace collect::ingest
