#include "storage/fs/kept_order.h"

#include <algorithm>

namespace collect::storage {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// The longest part that does not fall (`strict`: that rises), by patience sorting. Of two as long,
// the one that ends lower: a value that is far too high is more to be doubted than its neighbour.
template <class ValueOf>
std::vector<uint32_t> longest_rise(size_t count, bool strict, ValueOf value_of) {
  std::vector<uint32_t> tails;  // by length: the last of the part that ends lowest
  std::vector<uint32_t> before(count, kNone);
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = value_of(i);
    const auto at = std::partition_point(tails.begin(), tails.end(), [&](uint32_t tail) {
      return strict ? value_of(tail) < value : value_of(tail) <= value;
    });
    if (at != tails.begin()) before[i] = *std::prev(at);
    if (at == tails.end()) {
      tails.push_back(static_cast<uint32_t>(i));
    } else {
      *at = static_cast<uint32_t>(i);
    }
  }
  std::vector<uint32_t> kept;
  if (tails.empty()) return kept;
  kept.reserve(tails.size());
  for (uint32_t at = tails.back(); at != kNone; at = before[at]) kept.push_back(at);
  std::reverse(kept.begin(), kept.end());
  return kept;
}

uint64_t median_of(std::vector<uint64_t>& values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

// The last block has up to twice as many, so that no median is one of a few.
void KeptOrder::survey(uint64_t value) {
  if (block_values_.size() == 2 * kBlock) {
    std::vector<uint64_t> first(block_values_.begin(), block_values_.begin() + kBlock);
    medians_.push_back(median_of(first));
    block_values_.erase(block_values_.begin(), block_values_.begin() + kBlock);
  }
  block_values_.push_back(value);
}

void KeptOrder::end_survey() {
  if (!block_values_.empty()) medians_.push_back(median_of(block_values_));
  block_values_ = {};
  trusted_.assign(medians_.size(), false);
  for (const uint32_t block :
       longest_rise(medians_.size(), false, [&](size_t i) { return medians_[i]; })) {
    trusted_[block] = true;
  }
}

void KeptOrder::enter_block(size_t block) {
  if (block_ != SIZE_MAX && trusted_[block_]) last_trusted_ = medians_[block_];
  block_ = block;
  lower_ = last_trusted_;
  upper_ = UINT64_MAX;
  for (size_t later = block + 1; later < medians_.size(); ++later) {
    if (!trusted_[later]) continue;
    upper_ = medians_[later];
    break;
  }
}

Status KeptOrder::add(const Candidate& candidate) {
  const size_t block =
      std::min<size_t>(static_cast<size_t>(added_++ / kBlock), medians_.size() - 1);
  if (block != block_) {
    enter_block(block);
    if (pending_.size() >= 2 * kBlock) COLLECT_TRY(keep_first(safe_prefix()));
  }
  const uint64_t value = candidate.value;
  if (value < lower_ || value > upper_) return {};
  if (kept_any_ && falls(last_kept_, value)) return {};
  pending_.push_back(candidate);
  return pending_.size() >= kMaxPending ? keep_first(pending_.size()) : Status();
}

Status KeptOrder::finish() {
  return keep_first(pending_.size());
}

// Nothing in it is behind, in value, what follows it now or later.
size_t KeptOrder::safe_prefix() const {
  std::vector<uint64_t> lowest_from(pending_.size() + 1, lower_);
  for (size_t i = pending_.size(); i-- > 0;) {
    lowest_from[i] = std::min(lowest_from[i + 1], pending_[i].value);
  }
  size_t safe = 0;
  uint64_t highest = 0;
  for (size_t i = 0; i < pending_.size(); ++i) {
    highest = std::max(highest, pending_[i].value);
    if (!falls(highest, lowest_from[i + 1])) safe = i + 1;
  }
  return safe;
}

Status KeptOrder::keep_first(size_t count) {
  bool in_order = true;
  for (size_t i = 1; i < count && in_order; ++i) {
    in_order = !falls(pending_[i - 1].value, pending_[i].value);
  }
  const auto keep = [&](size_t i) -> Status {
    kept_any_ = true;
    last_kept_ = pending_[i].value;
    return on_kept_(pending_[i]);
  };
  if (in_order) {
    for (size_t i = 0; i < count; ++i) COLLECT_TRY(keep(i));
  } else {
    const auto kept = longest_rise(count, strict_, [&](size_t i) { return pending_[i].value; });
    for (const uint32_t i : kept) COLLECT_TRY(keep(i));
  }
  pending_.erase(pending_.begin(), pending_.begin() + static_cast<ptrdiff_t>(count));
  // What waits was compared with an older one.
  if (kept_any_) {
    std::erase_if(pending_, [&](const Candidate& one) { return falls(last_kept_, one.value); });
  }
  return {};
}

}  // namespace collect::storage
