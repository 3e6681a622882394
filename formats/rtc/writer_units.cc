// The ruler: Markers, Index and Meta at the start of each Unit, indices on the minor grid, clocks
// repeated behind both, the Crc at the end.
#include <algorithm>

#include "formats/core/leb128.h"
#include "formats/rtc/index_entries.h"
#include "formats/rtc/writer.h"

namespace collect::rtc {
namespace {

void store_in_order(uint8_t* out, uint32_t value, Endian endian) {
  store_le(out, endian == Endian::kLittle ? value : __builtin_bswap32(value));
}

}  // namespace

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
  json += std::to_string(next_id_) + "]";
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

// Whether writing the clock's value again, behind those before it, changes nothing for anybody. A
// delta counts from what its base shows at that place; once the base has ticked, that is another
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
  const std::string json = "[" + stream.json + "," + std::to_string(next_id_) + "]";
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
