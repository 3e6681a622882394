#include "agent/drain/codec_choice.h"

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
  agreed_ = agreed;
}

void CodecChoice::sent(uint64_t now_ns, uint64_t bytes, uint64_t raw_bytes) {
  since_full_ += bytes;
  span_raw_ += raw_bytes;
  watch_ease(now_ns);
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

void CodecChoice::idle(uint64_t now_ns) {
  was_full_ = false;
  watch_ease(now_ns);
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
  if (!encodes_ && agreed_ && link_rate_ < kSlowLink && link_rate_ < encoder / 2) {
    encodes_ = true;
    easy_spans_ = 0;
    span_begin_ns_ = full_ns_;
    span_raw_ = 0;
  } else if (encodes_ && (link_rate_ > kFastLink || link_rate_ > encoder)) {
    encodes_ = false;
  }
}

void CodecChoice::watch_ease(uint64_t now_ns) {
  if (!encodes_) return;
  const uint64_t span_ns = now_ns - span_begin_ns_;
  if (span_ns < kEasySpanNs) return;
  easy_spans_ = per_second(span_raw_, span_ns) < link_rate_ / 2 ? easy_spans_ + 1 : 0;
  span_begin_ns_ = now_ns;
  span_raw_ = 0;
  if (easy_spans_ >= kEasySpans) encodes_ = false;
}

}  // namespace collect::agent
