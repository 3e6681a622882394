// The gaps of one lane as the manifest shows them: in order, bounded, exactly counted.
#pragma once

#include <algorithm>
#include <vector>

#include "storage/manifest/manifest.h"

namespace collect::storage {

class GapList {
 public:
  static constexpr size_t kMaxListed = kMaxGapsPerThread / 2;  // a thread has two lanes

  // Gaps come in the order of their place. One before the same record extends the newest; one that
  // is too many is counted in the newest.
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

  void append(const GapList& other) {
    for (const Gap& gap : other.gaps_) add(gap);
  }

  std::vector<Gap>& gaps() { return gaps_; }
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

}  // namespace collect::storage
