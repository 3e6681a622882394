// Which records of a damaged file stay: the most that can, so that a value that never falls in a
// whole file (a time, a number) does not fall in what is left. A record whose value is too high
// costs itself, and not everything behind it; so does one whose value is too low.
//
// Two passes over the same candidates, in the order of the file. The first takes the median of each
// block of them: as long as most records of a block are whole, it is a whole one's. The second
// leaves out what is outside the medians of the blocks around it, and of the rest keeps the
// longest part that does not fall, exactly, between points that nothing crosses.
//
// Memory: kMaxPending candidates, and 8 bytes for each block. Used on one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "formats/core/result.h"

namespace collect::storage {

struct Candidate {
  uint64_t number = 0;  // of the record in its file
  uint64_t offset = 0;  // in the section
  uint32_t bytes = 0;
  uint64_t value = 0;
  uint64_t event = 0;  // of a detail record
};

class KeptOrder {
 public:
  static constexpr size_t kBlock = 32'768;
  static constexpr size_t kMaxPending = 4 * kBlock;

  using OnKept = std::function<Status(const Candidate&)>;
  // `strict`: two that stay do not have one value.
  KeptOrder(bool strict, OnKept on_kept) : strict_(strict), on_kept_(std::move(on_kept)) {}

  void survey(uint64_t value);
  void end_survey();
  // The second pass: takes the surveyed candidates again.
  Status add(const Candidate& candidate);
  Status finish();

 private:
  bool falls(uint64_t before, uint64_t after) const {
    return strict_ ? after <= before : after < before;
  }
  void enter_block(size_t block);
  size_t safe_prefix() const;
  Status keep_first(size_t count);

  const bool strict_;
  const OnKept on_kept_;
  std::vector<uint64_t> block_values_;  // of the survey: the present block
  std::vector<uint64_t> medians_;
  std::vector<bool> trusted_;  // medians that are in order themselves
  uint64_t added_ = 0;
  size_t block_ = SIZE_MAX;
  uint64_t lower_ = 0;  // of what the present block may have
  uint64_t upper_ = UINT64_MAX;
  uint64_t last_trusted_ = 0;
  std::vector<Candidate> pending_;
  bool kept_any_ = false;
  uint64_t last_kept_ = 0;
};

}  // namespace collect::storage
