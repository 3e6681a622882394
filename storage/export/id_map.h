// Ids of processes and threads in a file that holds several sessions: those of two devices, or of
// two times, may be the same. The first keeps its id, another one gets a free one from far above.
#pragma once

#include <cstdint>
#include <unordered_set>

namespace collect::exports {

class IdMap {
 public:
  static constexpr int32_t kFirstOther = 1'000'000'000;

  // Positive.
  int32_t take(uint32_t wanted) {
    if (wanted != 0 && wanted < static_cast<uint32_t>(kFirstOther) &&
        taken_.insert(wanted).second) {
      return static_cast<int32_t>(wanted);
    }
    return next_++;
  }

 private:
  std::unordered_set<uint32_t> taken_;
  int32_t next_ = kFirstOther;
};

}  // namespace collect::exports
