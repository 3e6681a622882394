#include "formats/parquet/dictionary.h"

#include <bit>
#include <functional>
#include <utility>

namespace collect::parquet {

void Dictionary::set_slots(size_t count) {
  slots_.assign(count, Slot{});
  shift_ = 64 - std::countr_zero(count);
}

bool Dictionary::grow() {
  const std::vector<Slot> old = std::move(slots_);
  set_slots(old.size() * 2);
  for (const Slot& moved : old) {
    if (moved.entry_plus_one == 0) continue;
    size_t at = slot_of(moved.key);
    size_t probes = 0;
    while (slots_[at].entry_plus_one != 0) {
      if (++probes == kMaxProbes) return false;
      at = (at + 1) & (slots_.size() - 1);
    }
    slots_[at] = moved;
  }
  return true;
}

template <class IsSame>
uint32_t Dictionary::entry_of(uint64_t key, uint32_t position, IsSame is_same) {
  size_t at = slot_of(key);
  for (size_t probes = 0; probes < kMaxProbes; ++probes) {
    Slot& slot = slots_[at];
    if (slot.entry_plus_one == 0) {
      if (positions_.size() == kMaxDictionaryValues) return kNoEntry;
      const auto entry = static_cast<uint32_t>(positions_.size());
      slot = {key, entry + 1};
      positions_.push_back(position);
      if (positions_.size() * 2 > slots_.size() && !grow()) return kNoEntry;
      return entry;
    }
    if (slot.key == key && is_same(slot.entry_plus_one - 1)) return slot.entry_plus_one - 1;
    at = (at + 1) & (slots_.size() - 1);
  }
  return kNoEntry;
}

bool Dictionary::build(const ColumnBuffer& buffer) {
  set_slots(kFirstSlots);
  positions_.clear();
  indices_.resize(buffer.value_count());
  return buffer.column().type == Type::kString ? build_texts(buffer) : build_words(buffer.words());
}

bool Dictionary::build_words(std::span<const uint64_t> words) {
  uint32_t entry = kNoEntry;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i == 0 || words[i] != words[i - 1]) {
      entry = entry_of(words[i], static_cast<uint32_t>(i), [](uint32_t) { return true; });
      if (entry == kNoEntry) return false;
    }
    indices_[i] = entry;
  }
  return true;
}

bool Dictionary::build_texts(const ColumnBuffer& buffer) {
  size_t bytes = 0;
  for (size_t i = 0; i < indices_.size(); ++i) {
    const std::string_view text = buffer.text(i);
    if (i != 0 && text == buffer.text(i - 1)) {
      indices_[i] = indices_[i - 1];
      continue;
    }
    const size_t known = positions_.size();
    indices_[i] = entry_of(std::hash<std::string_view>{}(text), static_cast<uint32_t>(i),
                           [&](uint32_t entry) { return buffer.text(positions_[entry]) == text; });
    if (indices_[i] == kNoEntry) return false;
    if (positions_.size() != known) bytes += text.size();
    if (bytes > kMaxDictionaryTextBytes) return false;
  }
  return true;
}

}  // namespace collect::parquet
