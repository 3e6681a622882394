// The different values of a column chunk, numbered in the order in which they come first, and the
// number of each value. Its memory is kept for the next chunk; one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/parquet/column_buffer.h"

namespace collect::parquet {

class Dictionary {
 public:
  // Replaces the dictionary by that of the values of a buffer. False: there are more different
  // values than a dictionary may have, or so many with colliding hashes that the search would be
  // slow, which a sender can bring about.
  bool build(const ColumnBuffer& buffer);

  // One for each value.
  std::span<const uint32_t> indices() const { return indices_; }
  // For each entry: which value of the buffer it is.
  std::span<const uint32_t> positions() const { return positions_; }

 private:
  struct Slot {
    uint64_t key;
    uint32_t entry_plus_one;  // 0: free
  };
  static constexpr size_t kFirstSlots = 1024;
  static constexpr size_t kMaxProbes = 128;
  static constexpr uint32_t kNoEntry = 0xFFFFFFFF;

  bool build_words(std::span<const uint64_t> words);
  bool build_texts(const ColumnBuffer& buffer);
  // The entry of the value at `position`, new or old; kNoEntry: see build().
  template <class IsSame>
  uint32_t entry_of(uint64_t key, uint32_t position, IsSame is_same);
  bool grow();
  void set_slots(size_t count);
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }

  std::vector<Slot> slots_;  // a power of two, half of them free at least
  int shift_ = 0;
  std::vector<uint32_t> positions_;
  std::vector<uint32_t> indices_;
};

}  // namespace collect::parquet
