// What a turn of a data lane reads and decodes into. A lane has none between its turns, so there
// are as many as there are turns at once; the one that was used last, and is still in the
// processor's cache, is used next. Thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "daemon/ingest/link/limits.h"
#include "formats/core/page.h"
#include "formats/core/result.h"

namespace collect::ingest {

// Turns pages that were encoded for the way into the records that are stored: WIRE.md "Page
// codecs". One for each turn of a data lane, so that it takes no more memory than one round of
// decoding.
class PageUnpacker {
 public:
  // Whether unpack() may be called for this page before clear().
  bool has_room(const Page& sent) const;
  // The page as it is stored, with the checksum of its records. The bytes of an encoded one are
  // here, until clear(). kDamaged: it can't be decoded.
  Result<Page> unpack(const Page& sent);
  void clear() { used_ = 0; }

 private:
  std::unique_ptr<uint8_t[]> records_;  // kUnpackBytes, taken with the first encoded page
  std::unique_ptr<uint8_t[]> scratch_;  // as many
  size_t used_ = 0;
};

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
  // Frees the buffers that were here since the last call.
  void trim() {
    std::vector<std::unique_ptr<LaneBuffer>> idle;
    std::lock_guard lock(mutex_);
    // No turn used the front of the list.
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
