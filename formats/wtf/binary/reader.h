// Reads WTF-trace files, format version 10 and the legacy version 3, from bytes that the caller
// maps and keeps: every event with its zone, in the order of the file, arguments decoded when asked
// for. A truncated or damaged file is read as far as it holds; what is left out is a finding. The
// JSON form is read by converting it first (json.h).
//
//   Findings findings;
//   auto reader = Reader::open(file, findings);
//   for (Event event; (*reader)->next(event);) use(event, (*reader)->zones()[event.zone]);
//
// Memory: definitions, zones and one chunk's string index, all limited (layout.h). One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/core/result.h"
#include "formats/wtf/binary/chunks.h"
#include "formats/wtf/binary/event.h"
#include "formats/wtf/binary/event_walker.h"
#include "formats/wtf/binary/header.h"

namespace collect::wtf {

struct Zone {
  // As created, UTF-8 or repaired; absent where the file has null.
  std::optional<std::string> name = "";
  std::optional<std::string> type = "";
  std::optional<std::string> location = "";
  bool created = false;    // by wtf.zone#create; else the default zone, which always exists
  bool undefined = false;  // only zone#set names it: its events would break the published viewer
  uint32_t zone_id = 0;    // in the file, of the first of that name
};

class Reader {
 public:
  // kUnsupported: another format version, or no binary WTF-trace at all; kTruncated: too short for
  // a file header. The same is in `findings`, which outlives the reader and collects the rest.
  static Result<std::unique_ptr<Reader>> open(Bytes file, Findings& findings);

  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  uint32_t format_version() const { return format_version_; }
  uint32_t tool_version() const { return tool_version_; }
  // Known from the start, wherever in the file it is; absent when there is none to read.
  const std::optional<FileHeader>& header() const { return header_; }
  std::string_view header_text() const { return header_text_; }  // format 10: its JSON

  // The events that the published viewer lists: all but definitions and zone events.
  bool next(Event& event);
  // Every event of the file.
  bool next_any(Event& event);

  // So far. Zone 0 is the default zone, which the first zone created takes over.
  const std::vector<Zone>& zones() const { return zones_; }
  // The zone that wtf.zone#set of this id means now; absent when it was never created.
  std::optional<uint32_t> zone_of_id(uint32_t id) const {
    if (id >= zone_of_id_.size() || zone_of_id_[id] == kNoZone) return std::nullopt;
    return zone_of_id_[id];
  }
  const TypeTable& types() const { return types_; }
  uint64_t chunks() const { return chunks_; }
  // The chunk of the last event: its resources are its parts. Empty in legacy files.
  const Chunk& chunk() const { return chunk_; }
  uint64_t position() const { return position_; }  // bytes of the file looked at, for progress

 private:
  Reader(Bytes file, Findings& findings);
  Status open_chunked();
  Status open_legacy();
  bool next_chunk();
  bool take_event_chunk();
  std::optional<std::string> legacy_text(ByteReader& in) const;
  void create_zone(const Event& event);
  void set_zone(const Event& event);
  uint32_t current_zone(const Event& event);
  uint32_t add_zone(Zone zone, uint64_t offset);

  static constexpr uint32_t kNoZone = UINT32_MAX;

  Bytes file_;
  Findings* findings_;
  uint32_t format_version_ = 0;
  uint32_t tool_version_ = 0;
  std::optional<FileHeader> header_;
  std::string_view header_text_;

  ChunkCursor cursor_;
  Chunk chunk_;
  uint64_t chunks_ = 0;
  uint64_t position_ = 0;

  TypeTable types_;
  StringTable strings_;
  std::optional<EventWalker> walker_;

  std::vector<Zone> zones_;
  std::vector<uint32_t> zone_of_id_;  // kNoZone: undefined
  std::unordered_map<std::string, uint32_t> zone_of_key_;
  size_t zone_bytes_ = 0;
  uint32_t current_ = 0;      // kNoZone: set to an undefined id
  uint32_t current_id_ = 0;   // that id
  bool zone_chosen_ = false;  // some zone event took effect
};

}  // namespace collect::wtf
