// What a session may not promise yet, with durability = object: what it reports as stored is held
// until the store has the changes of files that came before it. One request is on its way at a
// time; what comes meanwhile goes with the next. So the only thing that grows while the store is
// away is what the agents send without an ack, which their rings and spools bound, and a list of
// changed ranges, which the number of files bounds.
//
// Used by one thread at a time, as its StoredSession is; durable() and the end of a request by any.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/ingest/limits.h"
#include "daemon/ingest/segment_store.h"
#include "daemon/ingest/session_report.h"
#include "formats/core/keyed_hash.h"
#include "storage/changed_files.h"

namespace collect::ingest {

class SessionSegments {
 public:
  using OnStored = std::function<void(SessionReport)>;  // on a thread of the store

  // They outlive it. `pace`: between the beginnings of two requests.
  SessionSegments(SegmentStore& store, storage::Fs& fs, milliseconds pace)
      : store_(store), fs_(fs), pace_(pace), shared_(std::make_shared<Shared>()) {}

  // Through which the session's files are written.
  storage::Fs& fs() { return fs_; }
  // Takes out of the report what waits for the store.
  void hold(SessionReport& report);
  // Sends what has changed, unless a request is on its way or was sent a moment ago: then how long
  // to wait. `on_stored` gets what was held.
  std::optional<milliseconds> send(const std::string& name, const std::string& directory,
                                   const OnStored& on_stored);
  // The same, at once and with all that is left; no request may be on its way.
  void send_last(const std::string& name, const std::string& directory, const OnStored& on_stored);
  bool is_busy() const;
  // What the store has: an agent that comes back sends what is behind it.
  std::vector<storage::StreamPosition> durable() const;

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Shared {
    mutable std::mutex mutex;
    bool is_busy = false;                                                      // guarded by mutex
    std::unordered_map<uint32_t, storage::StreamPosition, KeyedHash> durable;  // guarded by mutex
  };

  void request(StoredChanges changes, const OnStored& on_stored);

  SegmentStore& store_;
  storage::ChangeTrackingFs fs_;
  const milliseconds pace_;
  const std::shared_ptr<Shared> shared_;  // a request may outlive this object
  SessionReport held_;
  bool holds_ = false;  // held_ has something
  bool is_first_ = true;
  Time sent_at_{};
};

}  // namespace collect::ingest
