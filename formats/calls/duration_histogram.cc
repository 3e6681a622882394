#include "formats/calls/duration_histogram.h"

#include <algorithm>

namespace collect::calls {

bool DurationHistogram::make_room(uint32_t octave, size_t& octaves_left) {
  const uint32_t first = counts_.empty() ? octave : std::min(first_octave_, octave);
  const uint32_t last = counts_.empty() ? octave : std::max(first_octave_ + octaves() - 1, octave);
  const size_t growth = last - first + 1 - octaves();
  if (growth > octaves_left) {
    is_complete_ = false;
    return false;
  }
  octaves_left -= growth;
  if (first < first_octave_) {  // which is 0 while there are none
    counts_.insert(counts_.begin(), size_t{first_octave_ - first} * kBucketsPerOctave, 0);
  }
  first_octave_ = first;
  counts_.resize(size_t{last - first + 1} * kBucketsPerOctave);
  return true;
}

void DurationHistogram::add(const DurationHistogram& other, size_t& octaves_left) {
  is_complete_ = is_complete_ && other.is_complete_;
  if (!is_complete_ || other.counts_.empty()) return;
  for (const uint32_t octave : {other.first_octave_, other.first_octave_ + other.octaves() - 1}) {
    if (octave - first_octave_ < octaves()) continue;
    if (!make_room(octave, octaves_left)) return;
  }
  const size_t from = size_t{other.first_octave_ - first_octave_} * kBucketsPerOctave;
  for (size_t i = 0; i < other.counts_.size(); ++i) counts_[from + i] += other.counts_[i];
}

DurationHistogram::Range DurationHistogram::range_of(uint32_t bucket) {
  const uint32_t octave = bucket / kBucketsPerOctave;
  const uint64_t within = bucket % kBucketsPerOctave;
  if (octave == 0) return {within, within};
  const uint64_t width = uint64_t{1} << (octave - 1);
  const uint64_t first_ns = (kBucketsPerOctave + within) * width;
  return {first_ns, first_ns + (width - 1)};
}

uint64_t DurationHistogram::count() const {
  uint64_t sum = 0;
  for (const uint64_t count : counts_) sum += count;
  return sum;
}

uint64_t DurationHistogram::percentile(uint32_t per_mille) const {
  __extension__ using UInt128 = unsigned __int128;
  const auto rank = static_cast<uint64_t>((UInt128{count()} * per_mille + 999) / 1000);
  uint64_t seen = 0;
  for (size_t i = 0; i < counts_.size(); ++i) {
    seen += counts_[i];
    if (counts_[i] == 0 || seen < rank) continue;
    const Range range = range_of(first_octave_ * kBucketsPerOctave + static_cast<uint32_t>(i));
    return range.first_ns + (range.last_ns - range.first_ns + 1) / 2;
  }
  return 0;
}

}  // namespace collect::calls
