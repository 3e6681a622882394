#include "formats/rtc/read/unit_room.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/encoding/leb128.h"

namespace collect::rtc {
namespace {

// What a Unit must have left for data in its roomiest minor unit.
constexpr size_t kMinDataRoom = 64;
// Lost at the end of a minor unit, where the next frame's header does not fit.
constexpr size_t kMaxSlack = kMaxClockBytes + 2 * kLeb128MaxBytes;
constexpr size_t kSpecialEntries = 5;  // of an Index: Index, index, Meta, platform and Crc
constexpr size_t kFrameHeadBytes = 3;  // of the special ones: id and up to two bytes of length

size_t frames_bytes(size_t payload) {
  return payload + (payload / kMaxPayloadBytes + 1) * kFrameHeadBytes;
}

// The most that a stream's entry takes in an Index.
size_t entry_bytes(uint64_t id, const Geometry& geometry) {
  return uleb128_size(id << 1) + uleb128_size(2 * geometry.unit_bytes);
}

// The most that one value of a clock takes as a frame.
size_t tick_bytes(const StreamInfo& clock, uint64_t id) {
  const size_t varying =
      clock.format.kind == FormatKind::kLeb128 ? kLeb128MaxBytes : kMaxClockBytes;
  return uleb128_size(id << 1) + 1 + clock.format.value_bytes().value_or(varying);
}

}  // namespace

UnitRoom::UnitRoom(const Geometry& geometry) : geometry_(geometry) {
  bounds_.entry_bytes = kSpecialEntries * entry_bytes(kCrcId, geometry);
  bounds_.meta_bytes = 2 + kLeb128MaxBytes;  // "[", the next free id, "]"
  bounds_.largest_whole_frame = kMinDataRoom;
}

Error UnitRoom::full(const StreamInfo& info, const Geometry& geometry) {
  return {Code::kLimit, fmt::format("Index, Meta and clocks with \"{}\" leave no room for data in "
                                    "a Unit of {} bytes with units of {}",
                                    info.name, geometry.unit_bytes, geometry.minor_bytes)};
}

Status UnitRoom::add(const StreamInfo& info, size_t json_bytes) {
  Bounds bounds = bounds_;
  bounds.entry_bytes += entry_bytes(info.id, geometry_);
  bounds.meta_bytes += json_bytes + 1;
  size_t whole = info.length ? *info.length + uleb128_size(info.id << 1) : 0;
  if (info.is_clock) {
    bounds.clock_bytes += tick_bytes(info, info.id);
    whole = std::max(whole, tick_bytes(info, info.id));
  }
  bounds.largest_whole_frame = std::max(bounds.largest_whole_frame, whole);
  if (bounds.meta_bytes > kMaxMetaBytes || bounds.entry_bytes > kMaxIndexBytes ||
      !has_room(bounds)) {
    return full(info, geometry_);
  }
  bounds_ = bounds;
  return {};
}

void UnitRoom::remove(const StreamInfo& info, size_t json_bytes) {
  bounds_.meta_bytes -= json_bytes + 1;
  bounds_.entry_bytes -= entry_bytes(info.id, geometry_);
  if (info.is_clock) bounds_.clock_bytes -= tick_bytes(info, info.id);
}

// Fills the sections with Meta, then clocks, and sees what is left in the roomiest.
bool UnitRoom::has_room(const Bounds& bounds) const {
  const uint64_t sections = geometry_.unit_bytes / geometry_.minor_bytes;
  const uint64_t index = frames_bytes(bounds.entry_bytes + kLeb128MaxBytes);
  const uint64_t last_short = kMarkerBytes + kLeb128MaxBytes;  // the Marker, and the Crc at the end
  const auto room_of = [&](uint64_t section, uint64_t taken) -> uint64_t {
    const uint64_t bytes = geometry_.minor_bytes - (section + 1 == sections ? last_short : 0);
    return bytes > taken + kMaxSlack ? bytes - taken - kMaxSlack : 0;
  };
  uint64_t left =
      frames_bytes(bounds.meta_bytes) + kFrameHeadBytes + 2 * kMaxSlack + bounds.clock_bytes;
  bool data_fits = false;
  for (uint64_t section = 0; section < sections && !data_fits; ++section) {
    uint64_t room = room_of(section, section == 0 ? index : index + bounds.clock_bytes);
    if (room == 0 && section + 1 < sections) return false;
    const uint64_t used = std::min(left, room);
    left -= used;
    room -= used;
    data_fits = left == 0 && room >= bounds.largest_whole_frame;
  }
  return data_fits && (sections == 1 || room_of(sections - 1, index + bounds.clock_bytes) != 0);
}

uint64_t UnitRoom::head_bytes() const {
  return section_head_bytes() + frames_bytes(bounds_.meta_bytes);
}

uint64_t UnitRoom::section_head_bytes() const {
  return frames_bytes(bounds_.entry_bytes + kLeb128MaxBytes) + bounds_.clock_bytes;
}

// Counts what every unit up to the end of this Unit offers at least.
bool UnitRoom::fits(size_t json_bytes, uint64_t room, Ahead ahead) const {
  const auto after_head = [](uint64_t bytes) {
    return bytes > 2 * kFrameHeadBytes ? bytes - 2 * kFrameHeadBytes : 0;
  };
  const uint64_t needed = json_bytes + json_bytes / kMaxPayloadBytes * kFrameHeadBytes;
  const uint64_t overhead =
      frames_bytes(bounds_.entry_bytes) + bounds_.clock_bytes + kMaxClockBytes;
  uint64_t offered = after_head(room);
  for (uint64_t at = ahead.first; at < ahead.end && offered < needed; at += geometry_.minor_bytes) {
    const uint64_t bytes = std::min(geometry_.minor_bytes, ahead.end - at);
    offered += bytes > overhead ? after_head(bytes - overhead) : 0;
  }
  return offered >= needed;
}

}  // namespace collect::rtc
