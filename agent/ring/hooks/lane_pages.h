// The producer's side of a lane: opening the next page, and, with FullPolicy::kOverwrite, taking
// the oldest one back. Pages of a lane form a chain from LaneState::head to LaneState::open.
#pragma once

#include "agent/ring/stream.h"

namespace collect::agent {

// Closes the open page, if any, and opens the next for index events. False: no page; `*reasons`
// says why. Losses counted since the last page was opened are noted in the new one.
bool open_index_page(Stream& stream, uint32_t* reasons);

// Number of the next index record of a stream that has a page open.
uint64_t index_next_seq(const Stream& stream);

// Appends a page to a lane's chain. `page` is complete but for its records.
void link_page(LaneState& lane, PageRef page);

// Keeps the lane's open page from the drain, or finds that it was taken. Before the lane is written
// in a new epoch: of the index when it is noted, of detail when there is a record.
void keep_open_page(Stream& stream, Lane which);

// A page for `lane`: a free one, or by policy its own oldest one.
PageRef take_page(LaneState& lane, Lane which, uint32_t* reasons);

// Moves what was counted as lost since the last page into `info`.
void note_losses(LaneState& lane, PageInfo& info);

uint64_t records_of(const PageInfo& info, Lane lane);

// After a hook was abandoned in the middle: nothing of it is held any more, and `open` is the
// chain's last page.
void recover_chain(LaneState& lane);

inline constexpr uint64_t kMaxLockNs = 1'000'000'000;

// Held over a few loads and stores only. The drain thread and the producer take it, and only with
// FullPolicy::kOverwrite.
class ChainLock {
 public:
  enum class Side : uint32_t { kProducer = 1, kDrain = 2 };

  ChainLock(LaneState& lane, Side side);
  ~ChainLock();
  // False: the drain held it for kMaxLockNs (its process was stopped, or is no more). Producer
  // only.
  bool is_held() const { return held_; }
  ChainLock(const ChainLock&) = delete;
  ChainLock& operator=(const ChainLock&) = delete;

 private:
  bool wait(Side side);

  LaneState* lane_;  // null: not needed
  bool held_ = true;
};

}  // namespace collect::agent
