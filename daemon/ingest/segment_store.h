// The store that acks wait for with durability = object. The collector has it: ingest knows neither
// buckets nor HTTP.
#pragma once

#include <functional>
#include <string>

#include "storage/changed_files.h"

namespace collect::ingest {

struct StoredChanges {
  std::string session;    // "session_…/pid_…", below the root
  bool is_first = false;  // the store has nothing that this goes on from: every file goes there
  bool is_last = false;   // the session is sealed
  storage::ChangedFiles files;
};

// Thread-safe.
class SegmentStore {
 public:
  virtual ~SegmentStore() = default;
  // `done` is called once, on another thread, when they are in the store, however long that takes;
  // never when the process ends before.
  virtual void store(StoredChanges changes, std::function<void()> done) = 0;
};

}  // namespace collect::ingest
