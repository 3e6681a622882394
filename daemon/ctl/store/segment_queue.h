// What collectord asks for while it records with durability = object: segments into the store, by
// some threads at once, each with a connection of its own, tried again until they are there.
//
// Thread-safe; lives as long as the process.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <iosfwd>
#include <mutex>
#include <string>

#include "daemon/upload/segment_request.h"
#include "daemon/upload/segment_upload.h"
#include "daemon/upload/store_request.h"
#include "storage/fs.h"

namespace collect::ctl {

class SegmentQueue {
 public:
  static constexpr unsigned kThreads = 4;

  // `done` on one of the threads, which begin with the first request. `fs` outlives it.
  SegmentQueue(const upload::StoreLocation& position, storage::Fs& fs, std::string root,
               std::function<void(uint64_t id)> done);

  // Takes requests until `in` ends, which is when collectord does.
  void read(std::istream& in);
  // Why the oldest request that fails does; empty: none does.
  std::string problem() const;

 private:
  void add(upload::SegmentRequest request);
  void serve();
  void send(const upload::SegmentRequest& request);
  void note(const std::string& problem);

  const upload::StoreLocation place_;
  storage::Fs& fs_;
  const std::string root_;
  const std::function<void(uint64_t id)> done_;
  upload::SegmentPositions positions_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<upload::SegmentRequest> requests_;  // guarded by mutex_; one of a session at most
  unsigned threads_ = 0;                         // guarded by mutex_; that were started
  std::string problem_;                          // guarded by mutex_
};

}  // namespace collect::ctl
