// Finding where reading can begin: Markers, the Index behind them, and the minor indices on their
// grid. Searches look at one byte in 1024 as long as they see no part of a Marker.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/rtc/index_entries.h"
#include "formats/rtc/layout.h"

namespace collect::rtc {

// A Marker is here, followed by the first byte of an Index or by the end of the bytes.
bool is_marker(Bytes file, uint64_t at);
// The first at or behind `from`.
std::optional<uint64_t> find_marker(Bytes file, uint64_t from);
// The last at or before `at`, and not before `lowest`.
std::optional<uint64_t> find_marker_backwards(Bytes file, uint64_t at, uint64_t lowest);

// The frames of one Index, index, Meta or meta put together, from its first frame; indices between
// its frames are passed over.
struct GatheredFrames {
  std::vector<uint8_t> payload;
  uint64_t end = 0;        // behind the last frame taken
  bool truncated = false;  // the bytes end first
};
// Absent when other frames come between or it grows beyond `limit`.
std::optional<GatheredFrames> gather_frames(Bytes file, uint64_t at, uint64_t id, size_t limit);

// What is behind a credible Marker.
struct UnitHead {
  uint64_t offset = 0;     // of the Marker
  bool truncated = false;  // the bytes end before the Index does; the rest is unknown
  uint64_t count = 0;
  Geometry geometry;
  uint64_t index_end = 0;
};
// Absent when no well-formed Index that states the Unit's size follows: then it is no Marker, but
// someone's payload.
std::optional<UnitHead> read_unit_head(Bytes file, uint64_t at);

// Whether the file starts, or soon continues, with a Marker: any part of a file whose first Marker
// is within `head`. By content alone; files cut at the front need a Unit and 1026 bytes of it.
bool looks_like_rtc(Bytes head);

// The sizes that an Index states: entry 3 is the Unit, entry 4 the unit. Published writers let
// entry 4 grow when both are equal. Absent when entry 3 is no possible size.
std::optional<Geometry> stated_geometry(const IndexEntries& index);

// Whether a minor index is here that counts from the Index at `index_at`.
bool is_minor_index(Bytes file, uint64_t at, uint64_t index_at);

}  // namespace collect::rtc
