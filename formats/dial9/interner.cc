#include "formats/dial9/interner.h"

#include <cstring>
#include <limits>

namespace collect::dial9 {
namespace {

constexpr size_t kRememberedOverhead = 80;  // of a hash table's node and its share of the buckets

}  // namespace

std::optional<uint32_t> Interner::intern(std::string_view content) {
  if (content.size() > kMaxFrameBytes / 2) return std::nullopt;
  if (const auto found = ids_.find(content); found != ids_.end()) return found->second;
  if (next_id_ == std::numeric_limits<uint32_t>::max()) return std::nullopt;
  if (remembered_bytes_ + content.size() + kRememberedOverhead > kMaxInternedBytes) {
    ids_ = {};
    remembered_bytes_ = 0;
  }
  const uint32_t id = next_id_++;
  ids_.emplace(content, id);
  remembered_bytes_ += content.size() + kRememberedOverhead;
  const size_t at = entries_.size();
  entries_.resize(at + kPoolEntryHeadBytes + content.size());
  store_le(entries_.data() + at, id);
  store_le(entries_.data() + at + 4, static_cast<uint32_t>(content.size() / item_bytes_));
  if (!content.empty())
    std::memcpy(entries_.data() + at + kPoolEntryHeadBytes, content.data(), content.size());
  ++count_;
  return id;
}

void Interner::write_frame(uint8_t* out) const {
  out[0] = static_cast<uint8_t>(tag_);
  store_le(out + 1, count_);
  std::memcpy(out + kPoolHeadBytes, entries_.data(), entries_.size());
}

void Interner::written() {
  entries_.clear();
  count_ = 0;
}

void Interner::restart() {
  written();
  ids_.clear();
  remembered_bytes_ = 0;
  next_id_ = 0;
}

}  // namespace collect::dial9
