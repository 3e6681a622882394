// Dense numbers for function ids, so that what is kept of each function is in an array.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collect::calls {

// Numbers functions 0, 1, 2, ... in order of appearance; a small cache answers nearly every time.
// Used on one thread; ids become the same slot for all threads of a session that it is used for.
class FunctionSlots {
 public:
  static constexpr size_t kMaxFunctions = size_t{1} << 22;
  // Is for every function beyond the limit.
  static constexpr uint64_t kOther = UINT64_MAX;

  uint32_t slot_of(uint64_t function_id) {
    Cached& cached = cache_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits)];
    if (cached.used && cached.function_id == function_id) return cached.slot;
    cached = {function_id, find_or_add(function_id), true};
    return cached.slot;
  }
  size_t size() const { return ids_.size(); }
  // The id; kOther for the slot that the functions beyond the limit share.
  uint64_t function_of(uint32_t slot) const { return ids_[slot]; }

 private:
  static constexpr int kCacheBits = 12;
  struct Cached {
    uint64_t function_id = 0;
    uint32_t slot = 0;
    bool used = false;
  };

  uint32_t find_or_add(uint64_t function_id) {
    if (const auto it = slots_.find(function_id); it != slots_.end()) return it->second;
    if (ids_.size() >= kMaxFunctions) {
      function_id = kOther;
      if (const auto it = slots_.find(kOther); it != slots_.end()) return it->second;
    }
    const auto slot = static_cast<uint32_t>(ids_.size());
    slots_.emplace(function_id, slot);
    ids_.push_back(function_id);
    return slot;
  }

  std::array<Cached, size_t{1} << kCacheBits> cache_{};
  std::unordered_map<uint64_t, uint32_t> slots_;
  std::vector<uint64_t> ids_;
};

}  // namespace collect::calls
