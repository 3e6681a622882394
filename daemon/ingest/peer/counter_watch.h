// The counters of one process, as its agent reports them, and the triggers that wait for one to
// pass a value.
//
// One peer's; its io thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "daemon/ingest/session/event_watch.h"
#include "formats/core/result.h"
#include "proto/wire/wire.pb.h"

namespace collect::ingest {

class CounterWatch {
 public:
  // Instead of those that were watched; events of other kinds are passed by. One that is above its
  // bound already is not seen before it was below.
  void watch(const std::vector<WatchedEvent>& events, OnSeen on_seen);
  // kDamaged: a name or a number of counters that the protocol does not allow.
  Status take(const wire::Counters& counters);
  // By name; wire::kMaxCounters at most.
  const std::map<std::string, int64_t>& values() const { return values_; }

 private:
  struct Watched {
    size_t number = 0;  // of the event
    std::string counter;
    int64_t above = 0;
    bool is_above = false;
  };

  std::map<std::string, int64_t> values_;
  std::vector<Watched> watched_;
  OnSeen on_seen_;
};

}  // namespace collect::ingest
