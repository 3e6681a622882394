// How far a long pass over a file is.
#pragma once

#include <cstdint>
#include <functional>

namespace collect::ctl {

using BytesDone = std::function<void(uint64_t)>;  // may be empty

// Tells it no oftener than this many bytes apart.
class DoneSteps {
 public:
  static constexpr uint64_t kStep = 16u << 20;

  explicit DoneSteps(const BytesDone& done) : done_(done) {}

  void at(uint64_t bytes) {
    if (!done_ || bytes < told_ + kStep) return;
    told_ = bytes;
    done_(told_);
  }

 private:
  const BytesDone& done_;
  uint64_t told_ = 0;
};

}  // namespace collect::ctl
