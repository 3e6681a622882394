#include "agent/drain/link/codec_choice.h"

namespace collect::agent {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;

// Bytes are bounded by what a second of any link carries, so that nothing overflows.
uint64_t per_second(uint64_t bytes, uint64_t ns) {
  return ns == 0 ? 0
                 : static_cast<uint64_t>(static_cast<double>(bytes) * kSecondNs /
                                         static_cast<double>(ns));
}

}  // namespace

void CodecChoice::begin_link(bool agreed) {
  *this = CodecChoice{};
  agreed_ = encodes_ = agreed;
}

void CodecChoice::blocked(uint64_t now_ns) {
  if (was_full_) {
    measured_ns_ += now_ns - full_ns_;
    measured_bytes_ += since_full_;
  }
  was_full_ = true;
  full_ns_ = now_ns;
  since_full_ = 0;
  if (measured_ns_ < kMeasureNs) return;
  link_rate_ = per_second(measured_bytes_, measured_ns_);
  measured_ns_ = measured_bytes_ = 0;
  judge();
}

void CodecChoice::encoded(uint64_t raw_bytes, uint64_t took_ns) {
  encoded_bytes_ += raw_bytes;
  encoded_ns_ += took_ns;
  if (encoded_bytes_ < 64 * kMeasureEncodedBytes) return;
  encoded_bytes_ /= 2;  // what is old counts less
  encoded_ns_ /= 2;
}

uint64_t CodecChoice::encoder_rate() const {
  return encoded_bytes_ < kMeasureEncodedBytes ? UINT64_MAX
                                               : per_second(encoded_bytes_, encoded_ns_);
}

void CodecChoice::judge() {
  const uint64_t encoder = encoder_rate();
  if (encodes_) {
    encodes_ = link_rate_ <= encoder;
  } else {
    encodes_ = agreed_ && link_rate_ < encoder / 2;
  }
}

}  // namespace collect::agent
