#include "formats/dial9/read/pool.h"

#include <algorithm>
#include <cstring>

namespace collect::dial9 {
namespace {

// Ids below kDenseIds + 2 x definitions are indexed directly: at most 32 bytes of array for each
// entry that took at least eight in the file.
constexpr uint64_t kDenseIds = 64;
constexpr size_t kBlockBytes = size_t{64} << 10;
// A hash table's entry: node, key, value, its share of the buckets.
constexpr size_t kSparseEntryBytes = 56;

}  // namespace

const PoolTable::Entry* PoolTable::find_sparse(uint32_t id) const {
  const auto found = sparse_.find(id);
  return found == sparse_.end() ? nullptr : &found->second;
}

// The dense range only grows, so an id that has moved into it is never looked for in the hash table
// again, except where nothing represents it in the array.
void PoolTable::define(uint32_t id, Entry entry) {
  ids_ += find(id) == nullptr ? 1 : 0;
  const uint64_t dense_end = kDenseIds + 2 * definitions_++;
  if (id >= dense_end) {
    sparse_[id] = entry;
    return;
  }
  if (id >= dense_.size()) {
    const size_t wanted = std::max<size_t>(size_t{id} + 1, dense_.size() * 2);
    dense_.resize(std::min<size_t>(wanted, static_cast<size_t>(dense_end)));
  }
  dense_[id] = entry;
}

// A cleared hash table would keep its buckets and touch them all at the next clear.
void PoolTable::clear() {
  dense_.clear();
  if (!sparse_.empty()) sparse_ = {};
  definitions_ = 0;
  ids_ = 0;
}

size_t PoolTable::state_bytes() const {
  return dense_.size() * sizeof(Entry) + sparse_.size() * kSparseEntryBytes;
}

const uint8_t* Pools::keep(Bytes bytes) {
  static constexpr uint8_t kEmpty[1] = {};
  if (bytes.empty()) return kEmpty;
  if (bytes.size() > kept_.left) {
    const size_t size = std::max(bytes.size(), kBlockBytes);
    kept_.blocks.push_back(std::make_unique_for_overwrite<uint8_t[]>(size));
    kept_.at = kept_.blocks.back().get();
    kept_.left = size;
    kept_.bytes += size;
  }
  uint8_t* const at = kept_.at;
  std::memcpy(at, bytes.data(), bytes.size());
  kept_.at += bytes.size();
  kept_.left -= bytes.size();
  return at;
}

void Pools::clear() {
  strings.clear();
  stacks.clear();
  kept_ = {};
}

}  // namespace collect::dial9
