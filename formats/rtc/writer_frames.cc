// How objects become frames: split at 1024 bytes and at the grid, or kept whole and padded around.
#include <algorithm>
#include <cstring>

#include "formats/core/crc32.h"
#include "formats/core/leb128.h"
#include "formats/rtc/checksum.h"
#include "formats/rtc/writer.h"

namespace collect::rtc {
namespace {

constexpr size_t kMaxHeadBytes = 2 * kLeb128MaxBytes;

size_t make_head(uint8_t* out, uint64_t id, bool more, size_t payload) {
  const size_t id_bytes = write_uleb128(out, id << 1 | (more ? 1 : 0));
  return id_bytes + write_uleb128(out + id_bytes, payload);
}

// The largest payload, of at most 1024 bytes, whose frame fits in `room`; 0 when none does.
size_t payload_that_fits(size_t id_bytes, uint64_t room) {
  if (room <= id_bytes + 1) return 0;
  const uint64_t behind_id = room - id_bytes;
  if (behind_id <= 128) return static_cast<size_t>(behind_id - 1);
  return static_cast<size_t>(
      std::min<uint64_t>(std::max<uint64_t>(behind_id - 2, 127), kMaxPayloadBytes));
}

}  // namespace

// The common case: one frame, for which both the minor unit and the buffer have room.
bool Writer::put_at_once(Stream& stream, Bytes object, bool more) {
  const bool has_length = stream.fixed_length < 0;
  if (object.size() > kMaxPayloadBytes ||
      (!has_length && object.size() != static_cast<size_t>(stream.fixed_length))) {
    return false;
  }
  const uint64_t room = std::min<uint64_t>(section_room(), kWriteBufferBytes - fill_);
  if (room < kMaxHeadBytes + object.size()) return false;
  if (stream.seen < section_at_) stream.seen = position();
  uint8_t* to = buffer_.get() + fill_;
  to += write_uleb128(to, stream.info.id << 1 | (more ? 1 : 0));
  if (has_length) to += write_uleb128(to, object.size());
  if (!object.empty()) std::memcpy(to, object.data(), object.size());
  fill_ = static_cast<size_t>(to - buffer_.get()) + object.size();
  return true;
}

// An object in as many frames as it takes. `seen`, when given, is the stream's place for the
// indices: only the first frame of a write counts, and only the first one in a minor unit.
Status Writer::write_splittable(uint64_t id, Bytes object, bool more, uint64_t* seen) {
  uint8_t full_head[kMaxHeadBytes];
  const size_t full_head_bytes = make_head(full_head, id, true, kMaxPayloadBytes);
  const size_t id_bytes = uleb128_size(id << 1);
  for (;;) {
    const uint64_t room = section_room();
    size_t payload = std::min(object.size(), payload_that_fits(id_bytes, room));
    const bool empty_fits = object.empty() && room >= id_bytes + 1;
    if (payload == 0 && !empty_fits) {
      COLLECT_TRY(next_section());
      continue;
    }
    if (seen != nullptr && *seen < section_at_) *seen = position();
    seen = nullptr;
    // Frames of full size whose successors exist, as many as stand in this minor unit.
    if (object.size() > kMaxPayloadBytes && payload == kMaxPayloadBytes) {
      const uint64_t frame = full_head_bytes + kMaxPayloadBytes;
      const auto count = static_cast<size_t>(
          std::min<uint64_t>(room / frame, (object.size() - 1) / kMaxPayloadBytes));
      COLLECT_TRY(put_full_frames(full_head, full_head_bytes, object.data(), count));
      object = object.subspan(count * kMaxPayloadBytes);
      continue;
    }
    const bool last = payload == object.size();
    uint8_t head[kMaxHeadBytes];
    const size_t head_bytes = make_head(head, id, more || !last, payload);
    COLLECT_TRY(put(Bytes(head, head_bytes)));
    COLLECT_TRY(put(object.first(payload)));
    if (last) return {};
    object = object.subspan(payload);
  }
}

// One frame that is never split: padding goes up to the boundary instead.
Status Writer::write_whole(uint64_t id, Bytes payload, bool more, bool with_length,
                           uint64_t* seen) {
  uint8_t head[kMaxHeadBytes];
  const size_t head_bytes = with_length ? make_head(head, id, more, payload.size())
                                        : write_uleb128(head, id << 1 | (more ? 1 : 0));
  const uint64_t first_unit = count_;
  while (section_room() < head_bytes + payload.size()) {
    // UnitRoom has seen to it that some minor unit of every Unit has room.
    if (count_ > first_unit + 1) return Error{Code::kLimit, "a frame fits in no unit"};
    COLLECT_TRY(next_section());
  }
  if (seen != nullptr && *seen < section_at_) *seen = position();
  COLLECT_TRY(put(Bytes(head, head_bytes)));
  return put(payload);
}

Status Writer::write_clock(Stream& stream, Bytes value) {
  const auto size = stream.info.format.value_bytes();
  if (value.empty() || value.size() > kMaxClockBytes || (size && value.size() != *size)) {
    if (options_.keep_bad_clock_values) return write_bad_clock_value(stream, value);
    return Error{Code::kInvalidArgument, stream.info.label() + ": " + std::to_string(value.size()) +
                                             " bytes are no " + stream.info.format.text};
  }
  const uint64_t id = stream.info.id;
  if (!started_) COLLECT_TRY(start());
  COLLECT_TRY(write_whole(id, value, false, stream.fixed_length < 0, &stream.seen));
  std::ranges::copy(value, stream.value.begin());
  stream.value_bytes = value.size();
  stream.version = next_version_++;
  if (stream.base_id != 0) stream.base_version = find(stream.base_id)->version;
  return {};
}

// Until its next value the clock shows nothing, and is not repeated.
Status Writer::write_bad_clock_value(Stream& stream, Bytes bytes) {
  if (stream.fixed_length >= 0) {
    return Error{Code::kInvalidArgument, stream.info.label() + ": " + std::to_string(bytes.size()) +
                                             " bytes are no frame of it"};
  }
  if (!started_) COLLECT_TRY(start());
  stream.version = 0;
  return write_splittable(stream.info.id, bytes, false, &stream.seen);
}

Status Writer::put_full_frames(const uint8_t* head, size_t head_bytes, const uint8_t* from,
                               size_t count) {
  const size_t frame = head_bytes + kMaxPayloadBytes;
  while (count > 0) {
    if (kWriteBufferBytes - fill_ < frame) COLLECT_TRY(drain());
    const size_t now = std::min(count, (kWriteBufferBytes - fill_) / frame);
    uint8_t* to = buffer_.get() + fill_;
    for (size_t i = 0; i < now; ++i) {
      std::memcpy(to, head, head_bytes);
      std::memcpy(to + head_bytes, from, kMaxPayloadBytes);
      to += frame;
      from += kMaxPayloadBytes;
    }
    fill_ += now * frame;
    count -= now;
  }
  return {};
}

Status Writer::put(Bytes bytes) {
  if (kWriteBufferBytes - fill_ < bytes.size()) COLLECT_TRY(drain());
  if (!bytes.empty()) std::memcpy(buffer_.get() + fill_, bytes.data(), bytes.size());
  fill_ += bytes.size();
  return {};
}

// One byte is a nul; more are padding frames.
Status Writer::pad(uint64_t count) {
  static constexpr uint8_t kZeros[kMaxPayloadBytes] = {};
  while (count > 0) {
    uint8_t head[kMaxHeadBytes];
    const size_t payload = payload_that_fits(1, count);
    if (payload == 0 && count == 1) {
      head[0] = kNulId << 1;
      return put(Bytes(head, 1));
    }
    const size_t head_bytes = make_head(head, kPaddingId, false, payload);
    COLLECT_TRY(put(Bytes(head, head_bytes)));
    COLLECT_TRY(put(Bytes(kZeros, payload)));
    count -= head_bytes + payload;
  }
  return {};
}

void Writer::add_to_crc() {
  const Bytes fresh = Bytes(buffer_.get() + crc_from_, fill_ - crc_from_);
  crc_ = options_.checksum == Checksum::kIeee ? crc32_ieee(fresh, crc_)
                                              : published_checksum(fresh, crc_);
  crc_from_ = fill_;
}

Status Writer::drain() {
  add_to_crc();
  if (fill_ > 0) {
    Status written = sink_->write(Bytes(buffer_.get(), fill_));
    if (!written) {
      failure_ = written.error();
      return written;
    }
  }
  flushed_ += fill_;
  fill_ = 0;
  crc_from_ = 0;
  return {};
}

}  // namespace collect::rtc
