// What a manifest shows as lost or delayed, bounded and exactly counted: the gaps of one lane, and
// the stalls of one thread or of a whole process.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage {

class GapList {
 public:
  static constexpr size_t kMaxListed = kMaxGapsPerThread / 2;  // a thread has two lanes

  // Gaps come in the order of their position. One before the same record extends the newest; one
  // that is too many is counted in the newest.
  void add(const Gap& gap) {
    if (gap.lost == 0) return;
    if (!gaps_.empty() && gaps_.back().before_seq == gap.before_seq) {
      merge(gap);
    } else if (gaps_.size() == kMaxListed) {
      merge(gap);
      gaps_.back().merged += gap.merged;
    } else {
      gaps_.push_back(gap);
    }
  }

  const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  void merge(const Gap& gap) {
    Gap& newest = gaps_.back();
    newest.lost += gap.lost;
    newest.numbered_lost += gap.numbered_lost;
    newest.reasons |= gap.reasons;
    if (newest.first_ns == 0) newest.first_ns = gap.first_ns;
    newest.last_ns = std::max(newest.last_ns, gap.last_ns);
  }

  std::vector<Gap> gaps_;
};

// The losses of one lane.
struct LaneLosses {
  GapList gaps;
  uint64_t numbered = 0;  // records that the agent numbered, in all gaps
};

// Stalls, those of each kind in order of time. Those of switches.bin are counted, and the newest of
// a kind is known.
class StallList {
 public:
  // One that ends no later than the newest of its kind is a repeat.
  bool is_repeat(const Stall& stall) const;
  // Without the part that was reported before, which only a joined one has.
  Stall rest_of(Stall stall) const;
  // What is no repeat. Where `most` of its kind are listed already, those that are closest to each
  // other are joined.
  void add(Stall stall, size_t most);

  // The stalls, behind what is in `out` already.
  void append_to(std::vector<Stall>& out, std::optional<uint32_t> thread) const;
  const StallTotals& totals() const { return totals_; }

 private:
  std::array<std::vector<Stall>, std::size(kStallKindNames)> listed_;  // by kind
  StallTotals totals_;
};

}  // namespace collect::storage
