// Commands that an agent has not answered yet. Each is answered exactly once: by the agent, by its
// deadline or by the end of the link.
//
// Belongs to the io thread of its Peer.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "daemon/ingest/live_session.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class PendingCommands {
 public:
  // So many at once: kMaxPendingCommands.
  bool is_full() const;
  // The id by which the agent is to answer.
  uint64_t add(Answer<wire::CommandResult> done, SteadyTime now);
  // One that comes too late is dropped.
  void take(const wire::CommandResult& result);
  void fail_all(const std::string& reason);
  void fail_late(SteadyTime now, const std::string& reason);

 private:
  struct Pending {
    Answer<wire::CommandResult> done;
    SteadyTime deadline;
  };

  std::map<uint64_t, Pending> commands_;  // by id
  uint64_t next_ = 1;
};

}  // namespace collect::ingest
