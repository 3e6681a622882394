// Events per second over a session, in about a thousand equal parts of its time. Constant memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace collect::exports {

class EventRate {
 public:
  static constexpr size_t kMaxParts = 1024;

  // The session's time; events outside count to the parts at the edge.
  EventRate(uint64_t first_ns, uint64_t last_ns)
      : first_ns_(first_ns), shift_(shift_of(last_ns - first_ns)) {
    parts_ = static_cast<size_t>((last_ns - first_ns) >> shift_) + 1;
  }

  void add(uint64_t ns) {
    const uint64_t part = (std::max(ns, first_ns_) - first_ns_) >> shift_;
    ++counts_[std::min<uint64_t>(part, parts_ - 1)];
  }

  // put(time at which a part begins, events per second in it) where that differs from the part
  // before; and 0 behind the last.
  template <class Put>
  void for_each_change(Put&& put) const {
    uint64_t before = UINT64_MAX;
    for (size_t i = 0; i < parts_; ++i) {
      const uint64_t rate = per_second(counts_[i]);
      if (rate != before) put(begin_of(i), rate);
      before = rate;
    }
    put(begin_of(parts_), uint64_t{0});
  }

 private:
  static uint32_t shift_of(uint64_t span_ns) {
    return static_cast<uint32_t>(std::bit_width(span_ns / kMaxParts));
  }
  uint64_t begin_of(size_t part) const { return first_ns_ + (uint64_t{part} << shift_); }
  uint64_t per_second(uint64_t events) const {
    return static_cast<uint64_t>(
        static_cast<double>(events) * 1e9 / static_cast<double>(uint64_t{1} << shift_) + 0.5);
  }

  uint64_t first_ns_;
  uint32_t shift_;
  size_t parts_ = 1;
  std::array<uint64_t, kMaxParts> counts_{};
};

}  // namespace collect::exports
