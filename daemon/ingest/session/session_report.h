// What became of a session since the last report. Everything in it was written and committed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "daemon/ingest/link/snapshot.h"
#include "daemon/ingest/session/rate_watch.h"
#include "formats/core/keyed_hash.h"
#include "storage/manifest/session_health.h"
#include "storage/model/session_types.h"

namespace collect::ingest {

struct SessionReport {
  struct Opened {
    std::string name;
    std::string directory;
  };
  struct Sealed {
    storage::SessionState state{};
    std::string reason;
    bool deferred =
        false;  // a full disk left the files unsealed: another report says when they are
    storage::SymbolsState symbols{};
    storage::SessionHealth health{};
  };
  std::optional<Opened> opened;
  bool progress = false;             // data came
  std::optional<DetailMode> detail;  // what the agent records now
  // Instead: this recording is sealed and complete already, in this session. Nothing is stored.
  std::optional<std::string> repeated;
  std::unordered_map<uint32_t, storage::StreamPosition, KeyedHash>
      stored;                // newest per stream that moved
  uint64_t stalls_next = 0;  // stalls below this number are stored; 0: none came
  std::vector<std::pair<uint64_t, std::vector<storage::StreamPosition>>> positions;  // by ticket
  storage::SessionTotals totals;
  std::vector<HotFunction> hot;  // to be switched off
  std::optional<Error> failed;   // kDamaged, kLimit, …: the agent's fault; kNoSpace, kIo, …: the
                                 // disk's. Never kExhausted: that is waited for
  std::optional<Sealed> sealed;
  // Instead: everything stored is on disk, and the session waits there for the next collector.
  bool suspended = false;

  // Adds what a later one says.
  void merge(SessionReport later);
};

}  // namespace collect::ingest
