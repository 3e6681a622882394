#include "storage/model/function_set.h"

#include <algorithm>

#include "formats/atf/layout.h"

namespace collect::storage {
namespace {

// A slot of the ids seen last. Chosen ids can do no more than miss it.
size_t recent_slot(uint64_t id, size_t slots) {
  return ((id * 0x9E3779B97F4A7C15ull) >> 32) % slots;
}

}  // namespace

void FunctionSet::add_events(Bytes events) {
  static_assert(offsetof(atf::IndexEventV1, function_id) ==
                offsetof(atf::IndexEventV2, function_id));
  const uint8_t* at = events.data() + offsetof(atf::IndexEventV2, function_id);
  const size_t count = events.size() / atf::kEventBytes;
  for (size_t i = 0; i < count; ++i, at += atf::kEventBytes) {
    const uint64_t id = load_le<uint64_t>(at);
    uint64_t& recent = recent_[recent_slot(id, recent_.size())];
    if (recent == id) continue;
    recent = id;
    add(id);
  }
}

void FunctionSet::add(uint64_t function_id) {
  if (function_id == 0) {
    has_zero_ = true;
    return;
  }
  if (count_ == kMaxFunctionIds) {
    overflowed_ = overflowed_ || insert(slots_, function_id);
    return;
  }
  if (!insert(slots_, function_id)) return;
  ++count_;
  if (count_ * 2 > slots_.size() && count_ < kMaxFunctionIds) grow();
}

// False when it is there already. With the limit reached, a new id is reported but not kept.
bool FunctionSet::insert(std::vector<uint64_t>& slots, uint64_t id) {
  const size_t mask = slots.size() - 1;
  for (size_t at = keyed_hash(key_, id) & mask;; at = (at + 1) & mask) {
    if (slots[at] == id) return false;
    if (slots[at] != 0) continue;
    if (count_ < kMaxFunctionIds) slots[at] = id;
    return true;
  }
}

void FunctionSet::grow() {
  std::vector<uint64_t> larger(slots_.size() * 2);
  for (const uint64_t id : slots_) {
    if (id != 0) insert(larger, id);
  }
  slots_ = std::move(larger);
}

std::vector<uint64_t> FunctionSet::sorted() const {
  std::vector<uint64_t> ids;
  ids.reserve(size());
  if (has_zero_) ids.push_back(0);
  for (const uint64_t id : slots_) {
    if (id != 0) ids.push_back(id);
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace collect::storage
