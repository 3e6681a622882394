#include "formats/rtc/writer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "formats/core/crc32.h"
#include "formats/core/encoding/leb128.h"
#include "formats/rtc/checksum.h"
#include "formats/rtc/index_entries.h"
#include "formats/rtc/meta/meta.h"

namespace collect::rtc {
namespace {

Error invalid(std::string sentence) {
  return {Code::kInvalidArgument, std::move(sentence)};
}

// What a description says by itself.
Status check_description(const StreamInfo& info) {
  const std::string label = info.name.empty() ? "a stream without a name" : info.name;
  if (info.length && *info.length > kMaxPayloadBytes) {
    return invalid(
        fmt::format("{}: a length of {} is beyond a frame's payload", label, *info.length));
  }
  const auto size = info.format.value_bytes();
  if (info.is_clock && (info.name.empty() || !info.format.is_number())) {
    return invalid(label + ": a clock needs a name and a format that is a number");
  }
  if (info.is_clock && info.length && (!size || *info.length != *size)) {
    return invalid(fmt::format("{}: the length is not that of {}", label, info.format.text));
  }
  if (info.is_clock && !info.clock.empty()) {
    return invalid(label + ": a clock cannot have the time of another");
  }
  if (!info.delta.empty() && !info.is_clock) {
    return invalid(label + ": only a clock is a delta on another");
  }
  return {};
}

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

void store_in_order(uint8_t* out, uint32_t value, Endian endian) {
  store_le(out, endian == Endian::kLittle ? value : __builtin_bswap32(value));
}

}  // namespace

Writer::Writer(ByteSink& sink, const WriterOptions& options)
    : sink_(&sink),
      options_(options),
      room_(options.geometry),
      buffer_(std::make_unique_for_overwrite<uint8_t[]>(kWriteBufferBytes)) {}

Result<Writer> Writer::create(ByteSink& sink, const WriterOptions& options) {
  COLLECT_TRY(check_geometry(options.geometry));
  return Writer(sink, options);
}

const StreamInfo* Writer::stream(uint64_t id) const {
  const Stream* found = const_cast<Writer*>(this)->find(id);
  return found == nullptr ? nullptr : &found->info;
}

Writer::Stream* Writer::find(uint64_t id) {
  const uint64_t place = id - kFirstStreamId;
  return place < streams_.size() && streams_[place].open ? &streams_[place] : nullptr;
}

Writer::Stream* Writer::find_named(const std::string& name) {
  const auto found = named_.find(name);
  return found == named_.end() ? nullptr : find(found->second);
}

Status Writer::check_references(const StreamInfo& info) {
  if (!info.name.empty() && find_named(info.name) != nullptr) {
    return Error{Code::kAlreadyExists, fmt::format("there is a stream \"{}\" already", info.name)};
  }
  for (const std::string* name : {&info.clock, &info.delta}) {
    if (name->empty()) continue;
    const Stream* clock = find_named(*name);
    if (clock == nullptr || !clock->info.is_clock) {
      return Error{Code::kNotFound, fmt::format("{}: there is no clock \"{}\"", info.name, *name)};
    }
  }
  if (!info.stream.empty() && find_named(info.stream) == nullptr) {
    return Error{Code::kNotFound,
                 fmt::format("{}: there is no stream \"{}\"", info.name, info.stream)};
  }
  return {};
}

Result<uint64_t> Writer::open_stream(StreamInfo info) {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished");
  COLLECT_TRY(check_description(info));
  COLLECT_TRY(check_references(info));
  const int length = info.length ? static_cast<int>(*info.length) : -1;
  while (id_may_forge_marker(next_id_, length)) ++next_id_;
  info.id = next_id_;
  auto json = stream_json(info);
  if (!json) return json.error();
  if (streams_.size() >= kMaxStreams) return UnitRoom::full(info, options_.geometry);
  COLLECT_TRY(room_.add(info, json->size()));

  const uint64_t id = next_id_++;
  streams_.resize(id - kFirstStreamId + 1);
  Stream& stream = streams_.back();
  stream.open = true;
  stream.fixed_length = length;
  stream.json = std::move(*json);
  stream.info = std::move(info);
  if (!stream.info.name.empty()) named_[stream.info.name] = id;
  if (stream.info.is_clock) clocks_.push_back(id);
  if (!stream.info.delta.empty()) stream.base_id = find_named(stream.info.delta)->info.id;
  meta_changed_ = true;
  if (started_) COLLECT_TRY(announce(stream));
  return id;
}

Status Writer::close_stream(uint64_t id) {
  if (failure_) return *failure_;
  Stream* stream = find(id);
  if (stream == nullptr) return Error{Code::kNotFound, fmt::format("no stream {}", id)};
  if (stream->unfinished) return invalid(stream->info.label() + ": an object is unfinished");
  for (const Stream& other : streams_) {
    const StreamInfo& info = other.info;
    if (!other.open || stream->info.name.empty()) continue;
    if (info.clock == stream->info.name || info.delta == stream->info.name ||
        info.stream == stream->info.name) {
      return invalid(fmt::format("{} refers to {}", info.label(), stream->info.name));
    }
  }
  stream->open = false;
  named_.erase(stream->info.name);
  std::erase(clocks_, id);
  room_.remove(stream->info, stream->json.size());
  meta_changed_ = true;
  return {};
}

Status Writer::write(uint64_t id, Bytes object, bool more) {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished");
  Stream* stream = find(id);
  if (stream == nullptr) return Error{Code::kNotFound, fmt::format("no stream {}", id)};
  if (stream->info.is_clock) {
    if (more) return invalid(stream->info.label() + ": a clock's value is one write");
    return write_clock(*stream, object);
  }
  const int length = stream->fixed_length;
  if (length >= 0 &&
      (length == 0 ? !object.empty()
                   : object.empty() || object.size() % static_cast<size_t>(length))) {
    return invalid(fmt::format("{}: {} bytes are no multiple of its length", stream->info.label(),
                               object.size()));
  }
  if (!started_) COLLECT_TRY(start());
  stream->unfinished = more;
  if (put_at_once(*stream, object, more)) return {};
  uint64_t* seen = &stream->seen;
  if (length < 0) return write_splittable(id, object, more, seen);
  if (length == 0) return write_whole(id, object, more, false, seen);
  while (!object.empty()) {
    const Bytes frame = object.first(static_cast<size_t>(length));
    object = object.subspan(frame.size());
    COLLECT_TRY(write_whole(id, frame, more || !object.empty(), false, seen));
    seen = nullptr;
  }
  return {};
}

Status Writer::flush() {
  if (failure_) return *failure_;
  if (finished_) return {};
  if (!started_) COLLECT_TRY(start());
  return drain();
}

Status Writer::finish() {
  if (failure_) return *failure_;
  if (finished_) return invalid("the file is finished already");
  if (!started_) COLLECT_TRY(start());
  const uint64_t crc_bytes = options_.special == SpecialFrames::kFixed ? 5 : 6;
  // Behind the padding and the index that this may take, so that both are covered.
  while (section_end_ < unit_end_ && section_room() < crc_bytes) COLLECT_TRY(next_section());
  COLLECT_TRY(close_unit());
  COLLECT_TRY(drain());
  finished_ = true;
  return {};
}

uint64_t Writer::position_after_finish() const {
  if (finished_) return position();
  if (!started_) return kMarkerBytes + room_.head_bytes() + 2 * kLeb128MaxBytes;
  return position() + 2 * kLeb128MaxBytes + room_.section_head_bytes();
}

// ---- frames: objects are split at 1024 bytes and at the grid, or kept whole and padded around

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
    // Frames of full size whose successors exist, as many as are in this minor unit.
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
    return Error{Code::kInvalidArgument, fmt::format("{}: {} bytes are no {}", stream.info.label(),
                                                     value.size(), stream.info.format.text)};
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
    return Error{Code::kInvalidArgument,
                 fmt::format("{}: {} bytes are no frame of it", stream.info.label(), bytes.size())};
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

// ---- Units: Markers, Index and Meta at their start, indices on the minor grid, the Crc at their
// end

Status Writer::start() {
  started_ = true;
  return open_unit();
}

// To the start of the next minor unit, or of the next Unit.
Status Writer::next_section() {
  COLLECT_TRY(pad(section_room()));
  if (section_end_ < unit_end_) return open_minor_unit();
  COLLECT_TRY(close_unit());
  ++count_;
  return open_unit();
}

Status Writer::open_unit() {
  const uint64_t crc_bytes = options_.special == SpecialFrames::kFixed ? 5 : 6;
  const uint64_t marker_at = position();
  unit_end_ = marker_at + options_.geometry.unit_bytes - crc_bytes;
  uint8_t marker[kMarkerBytes];
  std::fill_n(marker, kMarkerBytes, kMarkerFill);
  marker[0] = kMarkerFirstByte;
  COLLECT_TRY(put(marker));
  crc_ = 0;
  crc_from_ = fill_;

  const uint64_t here = position();
  const auto since = [&](uint64_t seen) { return seen == 0 ? 0 : here - seen; };
  std::vector<uint8_t> entries;
  append_index_count(entries, count_);
  append_index_entry(entries, {kIndexId, options_.geometry.unit_bytes});
  append_index_entry(entries, {kMinorIndexId, options_.geometry.minor_bytes});
  append_index_entry(entries, {kMetaId, since(last_changed_meta_)});
  append_index_entry(entries, {kPlatformId, since(platform_seen_)});
  append_index_entry(entries, {kCrcId, since(crc_seen_)});
  for (const Stream& stream : streams_) {
    if (stream.open) append_index_entry(entries, {stream.info.id, since(stream.seen)});
  }
  index_at_ = section_at_ = here;
  section_end_ = std::min(here + options_.geometry.minor_bytes, unit_end_);
  in_head_ = true;
  COLLECT_TRY(write_splittable(kIndexId, entries, false, nullptr));
  COLLECT_TRY(write_meta());
  in_head_ = false;
  COLLECT_TRY(write_platform());
  return repeat_clocks();
}

Status Writer::open_minor_unit() {
  const uint64_t here = position();
  std::vector<uint8_t> entries;
  append_index_entry(entries, {kIndexId, here - index_at_});
  const auto list = [&](uint64_t id, uint64_t seen) {
    if (seen >= index_at_) append_index_entry(entries, {id, here - seen});
  };
  list(kMetaId, last_changed_meta_);
  list(kPlatformId, platform_seen_);
  for (const Stream& stream : streams_) {
    if (stream.open) list(stream.info.id, stream.seen);
  }
  section_at_ = here;
  section_end_ = std::min(here + options_.geometry.minor_bytes, unit_end_);
  COLLECT_TRY(write_splittable(kMinorIndexId, entries, false, nullptr));
  // A reader that starts here knows no streams as long as Meta is not complete.
  return in_head_ ? Status{} : repeat_clocks();
}

Status Writer::close_unit() {
  add_to_crc();
  crc_seen_ = position();
  uint8_t frame[kLeb128MaxBytes] = {kCrcId << 1};
  size_t size = 1;
  if (options_.special == SpecialFrames::kPrefixed) frame[size++] = kCrcPayloadBytes;
  store_in_order(frame + size, crc_, options_.endian);
  return put(Bytes(frame, size + kCrcPayloadBytes));
}

Status Writer::write_meta() {
  std::string json = "[";
  for (const Stream& stream : streams_) {
    if (stream.open) json += stream.json + ",";
  }
  json += fmt::format("{}]", next_id_);
  if (meta_changed_) last_changed_meta_ = position();
  meta_changed_ = false;
  return write_splittable(
      kMetaId, Bytes(reinterpret_cast<const uint8_t*>(json.data()), json.size()), false, nullptr);
}

Status Writer::write_platform() {
  uint8_t value[kPlatformPayloadBytes];
  store_in_order(value, kPlatformValue, options_.endian);
  return write_whole(kPlatformId, value, false, options_.special == SpecialFrames::kPrefixed,
                     &platform_seen_);
}

// Whether writing the clock's value again, behind those before it, changes nothing for any reader.
// A delta counts from what its base shows at that place; once the base has ticked, that is another
// time, and to show the base's old value again would let it run backwards.
bool Writer::may_repeat(const Stream& clock) {
  if (clock.version == 0 || clock.info.delta.empty()) return clock.version != 0;
  const Stream& base = *find(clock.base_id);
  return base.version == clock.base_version && may_repeat(base);
}

Status Writer::repeat_clocks() {
  if (!options_.repeat_clocks) return {};
  std::vector<Stream*> clocks;
  uint64_t bytes = 0;
  for (const uint64_t id : clocks_) {
    Stream* clock = find(id);
    if (!may_repeat(*clock)) continue;
    clocks.push_back(clock);
    bytes += uleb128_size(id << 1) + 1 + clock->value_bytes;
  }
  // All together or not at all: an index in the middle would repeat them between these.
  if (bytes > section_room()) return next_section();
  for (Stream* clock : clocks) {
    COLLECT_TRY(write_whole(clock->info.id, Bytes(clock->value.data(), clock->value_bytes), false,
                            clock->fixed_length < 0, &clock->seen));
  }
  return {};
}

// A stream that was opened inside a Unit, as meta. Without room for it the Unit ends early, and the
// next Meta carries it.
Status Writer::announce(const Stream& stream) {
  const std::string json = fmt::format("[{},{}]", stream.json, next_id_);
  if (room_.fits(json.size(), section_room(), {section_end_, unit_end_})) {
    return write_splittable(kMetaDeltaId,
                            Bytes(reinterpret_cast<const uint8_t*>(json.data()), json.size()),
                            false, nullptr);
  }
  const uint64_t unit = count_;
  while (count_ == unit) COLLECT_TRY(next_section());
  return {};
}

}  // namespace collect::rtc
