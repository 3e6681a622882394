// The agent's numbers of records and their positions in a file, by the gaps of the stream journal:
// each numbered loss moves what comes behind it. Used on one thread.
#pragma once

#include <cstdint>

#include "formats/core/result.h"
#include "storage/manifest/manifest.h"
#include "storage/thread/stream_journal.h"

namespace collect::storage {

inline constexpr uint64_t kLost = UINT64_MAX;

// The gaps of one lane that took numbers away, in order.
class NumberedGaps {
 public:
  NumberedGaps(StreamJournal& journal, Lane lane) : journal_(journal), lane_(lane) {}

  // The first one that was not passed; null behind the last one. Valid until pass().
  Result<const Gap*> peek() {
    while (!has_gap_) {
      const auto there = journal_.read(slot_, gap_);
      if (!there.ok()) return there.error();
      if (!*there) return static_cast<const Gap*>(nullptr);
      ++slot_;
      has_gap_ = gap_.lane == lane_ && gap_.numbered_lost != 0;
    }
    return static_cast<const Gap*>(&gap_);
  }
  void pass() {
    lost_before_ += gap_.numbered_lost;
    has_gap_ = false;
  }
  uint64_t lost_before() const { return lost_before_; }  // of those that were passed

 private:
  StreamJournal& journal_;
  const Lane lane_;
  uint64_t slot_ = 0;
  uint64_t lost_before_ = 0;
  bool has_gap_ = false;
  Gap gap_;
};

// Where a record is.
struct Place {
  uint64_t position = kLost;
  // Not here, and not known to be lost: another part of the session may have it.
  bool may_be_elsewhere = false;
};

// Agent's number of a record -> its position in the file. Asked with growing numbers.
class PositionMap {
 public:
  PositionMap(StreamJournal& journal, Lane lane, uint64_t records)
      : gaps_(journal, lane), records_(records) {}

  Result<Place> place(uint64_t seq) {
    while (true) {
      const auto gap = gaps_.peek();
      if (!gap.ok()) return gap.error();
      if (*gap == nullptr) break;
      const uint64_t begin = (*gap)->before_seq + gaps_.lost_before();
      if (seq < begin) break;
      if (seq < begin + (*gap)->numbered_lost) {
        return Place{kLost, ((*gap)->reasons & (kLostOverwritten | kLostDamaged)) == 0};
      }
      gaps_.pass();
    }
    const uint64_t position = seq - gaps_.lost_before();
    return position < records_ ? Place{position, false} : Place{kLost, true};
  }

 private:
  NumberedGaps gaps_;
  const uint64_t records_;
};

// Position of a detail record in its file -> agent's number. Asked with growing positions.
class NumberMap {
 public:
  explicit NumberMap(StreamJournal& journal) : gaps_(journal, Lane::kDetail) {}

  Result<uint64_t> number(uint64_t position) {
    while (true) {
      const auto gap = gaps_.peek();
      if (!gap.ok()) return gap.error();
      if (*gap == nullptr || position < (*gap)->before_seq) break;
      gaps_.pass();
    }
    return position + gaps_.lost_before();
  }

 private:
  NumberedGaps gaps_;
};

}  // namespace collect::storage
