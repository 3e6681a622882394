// How long calls took, in buckets whose width grows with the duration: 16 to each power of two. A
// percentile is the middle of its bucket, so it is off by 1/32 (3.2 %) at most; below 32 ns it is
// exact. Memory: 128 bytes for each power of two between the shortest and the longest.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace collect::calls {

class DurationHistogram {
 public:
  static constexpr uint32_t kBucketsPerOctave = 16;

  // `octaves_left` is what this and others may still grow by, in powers of two. Where it is used
  // up, the duration is left out, and is_complete() is false from then on.
  void add(uint64_t ns, size_t& octaves_left) {
    const uint32_t octave = octave_of(ns);
    if (octave - first_octave_ >= octaves()) {
      if (!is_complete_ || !make_room(octave, octaves_left)) return;
    }
    ++counts_[(octave - first_octave_) * kBucketsPerOctave + within(ns, octave)];
  }
  void add(const DurationHistogram& other, size_t& octaves_left);

  // The buckets as they are stored elsewhere: numbers of buckets are below kMaxBuckets.
  static constexpr uint32_t kMaxBuckets = 61 * kBucketsPerOctave;
  void put(uint32_t bucket, uint64_t count, size_t& octaves_left) {
    const uint32_t octave = bucket / kBucketsPerOctave;
    if (octave - first_octave_ >= octaves()) {
      if (!is_complete_ || !make_room(octave, octaves_left)) return;
    }
    counts_[bucket - first_octave_ * kBucketsPerOctave] += count;
  }
  void leave_out() { is_complete_ = false; }  // durations that are not known
  const std::vector<uint64_t>& counts() const { return counts_; }
  // (bucket, count) of those that are not empty, from the shortest durations on.
  template <class F>
  void for_each(F&& each) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] == 0) continue;
      each(first_octave_ * kBucketsPerOctave + static_cast<uint32_t>(i), counts_[i]);
    }
  }

  // Shortest and longest duration of a bucket.
  struct Range {
    uint64_t first_ns;
    uint64_t last_ns;
  };
  static Range range_of(uint32_t bucket);
  static uint32_t bucket_of(uint64_t ns) {
    const uint32_t octave = octave_of(ns);
    return octave * kBucketsPerOctave + within(ns, octave);
  }

  bool is_complete() const { return is_complete_; }
  uint64_t count() const;
  // The duration that `per_mille` of all are not longer than (nearest rank); 0 without any.
  uint64_t percentile(uint32_t per_mille) const;

 private:
  // Octave 0 has 0..15, octave n has 2^(n+3) .. 2^(n+4)-1.
  static uint32_t octave_of(uint64_t ns) {
    return ns < kBucketsPerOctave ? 0 : static_cast<uint32_t>(std::bit_width(ns)) - 4;
  }
  static uint32_t within(uint64_t ns, uint32_t octave) {
    return static_cast<uint32_t>(octave == 0 ? ns : ns >> (octave - 1)) % kBucketsPerOctave;
  }
  uint32_t octaves() const { return static_cast<uint32_t>(counts_.size()) / kBucketsPerOctave; }
  bool make_room(uint32_t octave, size_t& octaves_left);

  std::vector<uint64_t> counts_;
  uint32_t first_octave_ = 0;
  bool is_complete_ = true;
};

}  // namespace collect::calls
