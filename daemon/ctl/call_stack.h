// The calls that are open on one thread, rebuilt from its events. Real traces lose returns
// (longjmp, ring overflow) and begin in the middle, so a return, or an exception, may close several
// calls or none. Nothing here trusts the input: depth and the number of functions have limits.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace collect::ctl {

// Numbers functions 0, 1, 2, ... in order of appearance; a small cache answers nearly every time.
class FunctionSlots {
 public:
  static constexpr size_t kMaxFunctions = size_t{1} << 22;
  // Stands for every function beyond the limit.
  static constexpr uint64_t kOther = UINT64_MAX;

  uint32_t slot_of(uint64_t function_id) {
    Cached& cached = cache_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits)];
    if (cached.used && cached.function_id == function_id) return cached.slot;
    cached = {function_id, find_or_add(function_id), true};
    return cached.slot;
  }
  size_t size() const { return ids_.size(); }
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

class CallStack {
 public:
  static constexpr size_t kMaxDepth = size_t{1} << 20;  // deeper calls are counted, not timed

  struct Frame {
    uint64_t start_ns = 0;
    uint64_t callees_ns = 0;  // inclusive time of the calls made from here
    uint32_t slot = 0;
  };
  struct Ended {
    uint32_t slot = 0;
    uint64_t total_ns = 0;
    uint64_t self_ns = 0;
    bool returned =
        false;  // by its own return or exception; else an outer one, or the end, closed it
    bool outermost = false;  // no other call of this function is open
  };

  size_t depth() const { return frames_.size() + too_deep_; }

  // False beyond kMaxDepth.
  bool call(uint32_t slot, uint64_t now_ns) {
    if (frames_.size() >= kMaxDepth) {
      ++too_deep_;
      return false;
    }
    if (slot >= open_.size()) open_.resize(slot + 1);
    ++open_[slot];
    frames_.push_back({now_ns, 0, slot});
    return true;
  }

  // Gives ended(Ended) for every call that this closes, innermost first. False when no call of this
  // function is open: then nothing is closed. The count of open calls makes that answer constant
  // time, so that a hostile file cannot make each return search a deep stack in vain.
  template <class F>
  bool leave(uint32_t slot, uint64_t now_ns, F&& ended) {
    if (too_deep_ != 0) {
      --too_deep_;
      return true;
    }
    if (slot >= open_.size() || open_[slot] == 0) return false;
    while (frames_.back().slot != slot) pop(now_ns, false, ended);
    pop(now_ns, true, ended);
    return true;
  }

  // Closes what is still open. Ready for the next thread afterwards.
  template <class F>
  void finish(uint64_t now_ns, F&& ended) {
    while (!frames_.empty()) pop(now_ns, false, ended);
    too_deep_ = 0;
  }

 private:
  template <class F>
  void pop(uint64_t now_ns, bool returned, F& ended) {
    const Frame frame = frames_.back();
    frames_.pop_back();
    // Times that step back make no negative durations.
    const uint64_t total = now_ns > frame.start_ns ? now_ns - frame.start_ns : 0;
    const uint64_t self = total > frame.callees_ns ? total - frame.callees_ns : 0;
    if (!frames_.empty()) frames_.back().callees_ns += total;
    const bool outermost = --open_[frame.slot] == 0;
    ended(Ended{frame.slot, total, self, returned, outermost});
  }

  std::vector<Frame> frames_;
  std::vector<uint32_t> open_;  // by slot: how many calls are open
  uint64_t too_deep_ = 0;
};

}  // namespace collect::ctl
