// Which bytes of the current Unit and of the one before it begin a frame: one bit for each byte. An
// index entry that points at such a byte of the right stream is right; the byte alone could be
// anything.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace collect::rtc {

inline constexpr uint64_t kMaxTrackedUnitBytes = uint64_t{64} << 20;  // 8 MiB of bits for each

class FrameStarts {
 public:
  // A Marker is here.
  void begin_unit(uint64_t at) {
    previous_.swap(current_);
    previous_at_ = current_at_;
    current_.clear();
    current_at_ = at;
  }
  void add(uint64_t at) {
    const uint64_t bit = at - current_at_;
    if (at < current_at_ || bit >= kMaxTrackedUnitBytes) return;
    if (bit / 64 >= current_.size()) current_.resize(bit / 64 * 3 / 2 + 16);
    current_[bit / 64] |= uint64_t{1} << bit % 64;
  }
  // Absent when it is too long ago.
  std::optional<bool> contains(uint64_t at) const {
    if (at >= current_at_) return test(current_, at - current_at_);
    if (at >= previous_at_ && !previous_.empty()) return test(previous_, at - previous_at_);
    return std::nullopt;
  }

 private:
  static std::optional<bool> test(const std::vector<uint64_t>& bits, uint64_t bit) {
    if (bit >= kMaxTrackedUnitBytes) return std::nullopt;
    return bit / 64 < bits.size() && (bits[bit / 64] >> bit % 64 & 1) != 0;
  }

  std::vector<uint64_t> current_;
  std::vector<uint64_t> previous_;
  uint64_t current_at_ = 0;
  uint64_t previous_at_ = 0;
};

}  // namespace collect::rtc
