// The streams that a reader knows where it is, with what it holds of each: the clock's value, the
// object that is still open. Belongs to the reader's thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/rtc/meta/decimal.h"
#include "formats/rtc/meta/stream_info.h"

namespace collect::rtc {

// A clock, found by its name: streams refer to it before and after it is described.
struct ClockState {
  const StreamInfo* info = nullptr;  // null: no stream of this name is a clock
  ClockState* base = nullptr;        // of a delta
  std::optional<ExactTime> exact;
  std::optional<int64_t> ns;
  uint64_t epoch = 0;  // of the reader when it last ticked
};

// The first of a chain of deltas, which all clocks of one time line share. Clocks that are deltas
// on each other have none: then it is one of them.
const ClockState* root_of(const ClockState* clock);
// Whether its times count from the epoch: a timespec, a number with an offset, or a delta on one.
bool has_epoch(const ClockState* clock);

struct StreamState {
  StreamInfo info;
  int fixed_length = -1;            // or the payload bytes of every frame
  int torn_rest = 0;                // what the next frame holds of a torn one; 0: it is not torn
  ClockState* clock = nullptr;      // whose time the objects have
  ClockState* own_clock = nullptr;  // of a clock: itself
  uint64_t epoch = 0;  // of the reader when its last object began; another: it may be only the end

  // The object that is open.
  bool open = false;
  bool discarding = false;  // beyond the limits: its frames are passed over
  size_t place = 0;         // in the reader's list of open ones
  bool possibly_incomplete = false;
  uint64_t offset = 0;
  std::optional<int64_t> time_ns;
  bool time_uncertain = false;
  uint32_t frames = 0;
  uint64_t size = 0;
  std::vector<Bytes> fragments;
};

class StreamTable {
 public:
  // Null for an id that nothing describes.
  StreamState* find(uint64_t id) {
    if (id < dense_.size()) return dense_[id];
    return id < kDense ? nullptr : find_sparse(id);
  }
  const StreamState* find(uint64_t id) const { return const_cast<StreamTable*>(this)->find(id); }

  // Adds or replaces a description. Null when there are kMaxStreams already.
  StreamState* add(StreamInfo info);
  // Forgets streams and clocks.
  void clear();
  // Forgets the clocks' values and the objects that are open.
  void forget_values();

  std::vector<const StreamInfo*> list() const;  // by id
  const ClockState* clock(std::string_view name) const;
  uint64_t version() const { return version_; }
  bool empty() const { return states_.empty(); }

 private:
  static constexpr uint64_t kDense = 4096;  // ids below are found by position
  StreamState* find_sparse(uint64_t id);
  ClockState* slot(const std::string& name);

  std::map<uint64_t, std::unique_ptr<StreamState>> states_;
  std::vector<StreamState*> dense_;
  std::map<std::string, ClockState, std::less<>> clocks_;  // nodes stay where they are
  uint64_t version_ = 0;
};

}  // namespace collect::rtc
