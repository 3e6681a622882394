#include "formats/rtc/marker.h"

#include <algorithm>
#include <bit>

#include "formats/core/encoding/leb128.h"

namespace collect::rtc {
namespace {

// Ends of the run of B9 around `at`, which holds one: [first, last).
struct Run {
  uint64_t first;
  uint64_t last;
};

Run run_around(Bytes file, uint64_t at, uint64_t lowest) {
  Run run{at, at + 1};
  while (run.first > lowest && file[run.first - 1] == kMarkerFill) --run.first;
  while (run.last < file.size() && file[run.last] == kMarkerFill) ++run.last;
  return run;
}

// The first byte of an Index in one frame, or in several.
bool begins_index(uint8_t byte) {
  return (byte & 0xFE) == kIndexFirstByte;
}

// A maximal run is a Marker's when 04 is before it and an Index, or nothing, behind it.
bool is_marker_run(Bytes file, const Run& run, uint64_t lowest) {
  return run.last - run.first == kMaxPayloadBytes && run.first > lowest &&
         file[run.first - 1] == kMarkerFirstByte &&
         (run.last == file.size() || begins_index(file[run.last]));
}

}  // namespace

bool is_marker(Bytes file, uint64_t at) {
  if (at >= file.size() || file.size() - at < kMarkerBytes || file[at] != kMarkerFirstByte ||
      file[at + kMaxPayloadBytes] != kMarkerFill || file[at + 1] != kMarkerFill) {
    return false;
  }
  return is_marker_run(file, run_around(file, at + 1, at), at);
}

std::optional<uint64_t> find_marker(Bytes file, uint64_t from) {
  // Every Marker that begins in [from, from + 1024) covers the byte at from + 1024.
  while (from < file.size() && file.size() - from > kMaxPayloadBytes) {
    const uint64_t probe = from + kMaxPayloadBytes;
    if (file[probe] != kMarkerFill) {
      from = probe;
      continue;
    }
    const Run run = run_around(file, probe, from);
    if (is_marker_run(file, run, from)) return run.first - 1;
    from = run.last;
  }
  return std::nullopt;
}

std::optional<uint64_t> find_marker_backwards(Bytes file, uint64_t at, uint64_t lowest) {
  // Every Marker that begins in (at - 1024, at] covers the byte at at + 1.
  if (file.size() < kMarkerBytes) return std::nullopt;
  at = std::min<uint64_t>(at, file.size() - kMarkerBytes);
  while (at >= lowest) {
    const uint64_t probe = at + 1;
    // The last place that is still to be looked at, plus one.
    uint64_t next = at + 1 > kMaxPayloadBytes ? at + 1 - kMaxPayloadBytes : 0;
    if (file[probe] == kMarkerFill) {
      const Run run = run_around(file, probe, lowest);
      if (is_marker_run(file, run, lowest)) return run.first - 1;
      next = std::max<uint64_t>(run.first, 1) - 1;
    }
    if (next == 0) return std::nullopt;
    at = next - 1;
  }
  return std::nullopt;
}

std::optional<GatheredFrames> gather_frames(Bytes file, uint64_t at, uint64_t id, size_t limit) {
  GatheredFrames gathered;
  gathered.end = at;
  bool skipping = false;  // inside of an index that came between
  for (bool first = true;; first = false) {
    const auto word = read_uleb128(file.subspan(at));
    const auto length = word ? read_uleb128(file.subspan(at + word.size)) : Leb128<uint64_t>{};
    if (!length) {
      const bool ended = word ? length.truncated : word.truncated;
      if (!ended) return std::nullopt;
      gathered.truncated = true;
      return gathered;
    }
    const uint64_t frame_id = word.value >> 1;
    if (frame_id == kMinorIndexId && id != kMinorIndexId && !first) {
      skipping = true;
    } else if (frame_id != id) {
      return std::nullopt;
    } else {
      skipping = false;
    }
    if (length.value > kMaxPayloadBytes) return std::nullopt;
    at += word.size + length.size;
    if (length.value > file.size() - at) {
      gathered.truncated = true;
      return gathered;
    }
    if (!skipping) {
      const Bytes payload = file.subspan(at, length.value);
      if (payload.size() > limit - gathered.payload.size()) return std::nullopt;
      gathered.payload.insert(gathered.payload.end(), payload.begin(), payload.end());
    }
    at += length.value;
    gathered.end = at;
    if (!skipping && (word.value & 1) == 0) return gathered;
  }
}

std::optional<Geometry> stated_geometry(const IndexEntries& index) {
  const auto possible = [](uint64_t bytes) {
    return std::has_single_bit(bytes) && bytes >= kMinUnitBytes && bytes <= kMaxUnitBytes;
  };
  const uint64_t unit = index.distance_of(kIndexId).value_or(0);
  if (!possible(unit)) return std::nullopt;
  const uint64_t minor = index.distance_of(kMinorIndexId).value_or(0);
  return Geometry{unit, possible(minor) && minor <= unit ? minor : unit};
}

std::optional<UnitHead> read_unit_head(Bytes file, uint64_t at) {
  if (!is_marker(file, at)) return std::nullopt;
  UnitHead head;
  head.offset = at;
  const auto index = gather_frames(file, at + kMarkerBytes, kIndexId, kMaxIndexBytes);
  if (!index) return std::nullopt;
  head.truncated = index->truncated;
  head.index_end = index->end;
  if (head.truncated) return head;
  const auto parsed = parse_index(index->payload, true);
  if (!parsed) return std::nullopt;
  const auto geometry = stated_geometry(*parsed);
  if (!geometry) return std::nullopt;
  head.count = parsed->count.value_or(0);
  head.geometry = *geometry;
  return head;
}

bool looks_like_rtc(Bytes head) {
  for (auto at = find_marker(head, 0); at; at = find_marker(head, *at + 1)) {
    if (read_unit_head(head, *at)) return true;
  }
  return false;
}

bool is_minor_index(Bytes file, uint64_t at, uint64_t index_at) {
  if (at >= file.size() || at <= index_at) return false;
  // The first entry suffices: nothing else holds this distance here. More would have to be paid for
  // at every place of the grid.
  const auto word = read_uleb128(file.subspan(at));
  if (!word || word.value >> 1 != kMinorIndexId) return false;
  const auto length = read_uleb128(file.subspan(at + word.size));
  const uint64_t begin = at + word.size + length.size;
  if (!length || length.value > kMaxPayloadBytes || length.value > file.size() - begin)
    return false;
  const Bytes payload = file.subspan(begin, length.value);
  const auto id = read_uleb128(payload);
  if (!id || id.value != (kIndexId << 1 | 1)) return false;
  const auto distance = read_uleb128(payload.subspan(id.size));
  return distance && distance.value == (at - index_at) << 1;
}

}  // namespace collect::rtc
