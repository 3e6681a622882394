// What is printed of a function, made once and not at every event. Not thread-safe: each worker has
// its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

namespace collect::ctl {

// `Text` is a struct of strings with a member bytes(). Memory is bounded: where a hostile file has
// more functions than fit, all are dropped and made again.
template <class Text>
class FunctionTexts {
 public:
  static constexpr size_t kMaxBytes = size_t{16} << 20;

  // make(function_id) where the text is not there. Valid until the next call.
  template <class Make>
  const Text& of(uint64_t function_id, Make make) {
    Cached& cached = cache_[(function_id * 0x9E3779B97F4A7C15ull) >> (64 - kCacheBits)];
    if (cached.text != nullptr && cached.function_id == function_id) return *cached.text;
    auto found = texts_.find(function_id);
    if (found == texts_.end()) {
      if (bytes_ > kMaxBytes) forget();
      found = texts_.emplace(function_id, make(function_id)).first;
      bytes_ += kEntryBytes + found->second.bytes();
    }
    cached = {function_id, &found->second};
    return found->second;
  }

 private:
  static constexpr int kCacheBits = 12;
  static constexpr size_t kEntryBytes = sizeof(Text) + 64;
  struct Cached {
    uint64_t function_id = 0;
    const Text* text = nullptr;  // in texts_
  };

  void forget() {
    texts_.clear();
    cache_ = {};
    bytes_ = 0;
  }

  std::unordered_map<uint64_t, Text> texts_;
  std::array<Cached, size_t{1} << kCacheBits> cache_{};
  size_t bytes_ = 0;
};

}  // namespace collect::ctl
