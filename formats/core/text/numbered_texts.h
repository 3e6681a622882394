// Texts that belong to small numbers (of functions), made once and not at every use. Used on one
// thread. Memory is bounded: where they take more than the limit, all are forgotten and made again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace collect {

class NumberedTexts {
 public:
  static constexpr size_t kMaxBytes = size_t{64} << 20;

  // make() where the text is not there; it is never empty. Valid until the next call.
  template <class Make>
  const std::string& of(uint32_t number, Make&& make) {
    if (number < texts_.size() && !texts_[number].empty()) return texts_[number];
    if (bytes_ > kMaxBytes) {
      texts_.clear();
      bytes_ = 0;
    }
    if (number >= texts_.size()) texts_.resize(size_t{number} + 1);
    std::string& text = texts_[number];
    text = make();
    bytes_ += text.size();
    return text;
  }

 private:
  std::vector<std::string> texts_;
  size_t bytes_ = 0;
};

}  // namespace collect
