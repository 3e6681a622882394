#include "storage/manifest/record_ranges.h"

#include <algorithm>

namespace collect::storage {

std::vector<RecordRange> record_ranges(std::span<const Gap> gaps, uint32_t thread, Lane lane,
                                       uint64_t records) {
  const auto of_thread = std::ranges::equal_range(gaps, thread, {}, &Gap::thread);
  std::vector<Gap> numbered;
  std::ranges::copy_if(of_thread, std::back_inserter(numbered), [lane](const Gap& gap) {
    return gap.lane == lane && gap.has_place && gap.numbered_lost != 0;
  });
  std::ranges::stable_sort(numbered, {}, &Gap::before_seq);

  std::vector<RecordRange> ranges;
  RecordRange next;
  const auto end_at = [&](uint64_t position) {
    next.records = position - next.position;
    if (next.records != 0) ranges.push_back(next);
    next.first_seq += next.records;
    next.position = position;
  };
  for (const Gap& gap : numbered) {
    end_at(std::min(std::max(gap.before_seq, next.position), records));
    next.first_seq += gap.numbered_lost;
    next.is_exact = next.is_exact && gap.merged <= 1;
  }
  end_at(records);
  return ranges;
}

uint64_t RecordNumbers::number_of(uint64_t position) const {
  auto behind = std::ranges::upper_bound(ranges_, position, {}, &RecordRange::position);
  if (behind == ranges_.begin()) return position;
  --behind;
  return position - behind->position + behind->first_seq;
}

bool RecordNumbers::is_identity() const {
  return ranges_.empty() || (ranges_.size() == 1 && ranges_[0].first_seq == 0);
}

}  // namespace collect::storage
