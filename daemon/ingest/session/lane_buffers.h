// What a turn of a data lane reads and decodes into. A lane has none between its turns, so there
// are as many as there are turns at once; the one that was used last, and is still in the
// processor's cache, is used next. Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/page_unpacker.h"

namespace collect::ingest {

struct LaneBuffer {
  std::unique_ptr<uint8_t[]> bytes = std::make_unique_for_overwrite<uint8_t[]>(kReadBufferBytes);
  PageUnpacker unpacker;
};

class LaneBuffers {
 public:
  std::unique_ptr<LaneBuffer> take() {
    {
      std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto buffer = std::move(free_.back());
        free_.pop_back();
        least_free_ = std::min(least_free_, free_.size());
        return buffer;
      }
    }
    return std::make_unique<LaneBuffer>();
  }
  void give_back(std::unique_ptr<LaneBuffer> buffer) {
    std::lock_guard lock(mutex_);
    free_.push_back(std::move(buffer));
  }
  // Frees the buffers that lay here since the last call.
  void trim() {
    std::vector<std::unique_ptr<LaneBuffer>> idle;
    std::lock_guard lock(mutex_);
    // The front of the list is what nobody came down to.
    const auto end = free_.begin() + static_cast<ptrdiff_t>(least_free_);
    idle.assign(std::make_move_iterator(free_.begin()), std::make_move_iterator(end));
    free_.erase(free_.begin(), end);
    least_free_ = free_.size();
  }
  size_t free_buffers() const {
    std::lock_guard lock(mutex_);
    return free_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<LaneBuffer>> free_;  // guarded by mutex_; used from its end
  size_t least_free_ = 0;                          // guarded by mutex_; since the last trim
};

}  // namespace collect::ingest
