#include "formats/wtf/binary/reader.h"

#include <fmt/core.h>

#include <algorithm>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

std::optional<std::string> text_or_null(Arguments& walk) {
  Value value;
  if (!walk.next(value)) return std::nullopt;
  if (!value.present()) return std::nullopt;
  return value.utf8();
}

void append_key(std::string& key, const std::optional<std::string>& text) {
  key += text ? '=' : '-';
  if (text) key += *text;
  key += '\0';
}

}  // namespace

Reader::Reader(Bytes file, Findings& findings)
    : file_(file), findings_(&findings), cursor_(file, findings), zones_(1) {}

Result<std::unique_ptr<Reader>> Reader::open(Bytes file, Findings& findings) {
  std::unique_ptr<Reader> reader(new Reader(file, findings));
  const auto refuse = [&](Code code, Rule rule, std::string why) -> Error {
    findings.add(Severity::kError, rule, 0, why);
    return {code, why};
  };
  if (file.size() < kFileHeaderBytes) {
    return refuse(Code::kTruncated, Rule::kFileHeader,
                  fmt::format("the file has {} bytes, too few for a header", file.size()));
  }
  const uint32_t magic = load_le<uint32_t>(file.data());
  const bool legacy = __builtin_bswap32(magic) == kMagic;
  if (magic != kMagic && !legacy) {
    return refuse(Code::kUnsupported, Rule::kFileHeader, "the file does not begin with a magic");
  }
  const auto word = [&](size_t at) {
    const uint32_t value = load_le<uint32_t>(file.data() + at);
    return legacy ? __builtin_bswap32(value) : value;
  };
  reader->tool_version_ = word(4);
  reader->format_version_ = word(8);
  const uint32_t wanted = legacy ? kLegacyFormatVersion : kFormatVersion;
  if (reader->format_version_ != wanted) {
    return refuse(Code::kUnsupported, Rule::kVersion,
                  fmt::format("format version {}{}; read are 10 and, big-endian, 3",
                              reader->format_version_, legacy ? " in big-endian order" : ""));
  }
  const Status opened = legacy ? reader->open_legacy() : reader->open_chunked();
  if (!opened.ok()) return opened.error();
  return reader;
}

// Looks for the header chunk, which may be anywhere, without reading the others.
Status Reader::open_chunked() {
  if (file_.size() % 4 != 0 || file_.size() < kMinFileBytes) {
    findings_->add(Severity::kError, Rule::kFileLength, file_.size(),
                   fmt::format("the file has {} bytes: not a multiple of 4, or under {}",
                               file_.size(), kMinFileBytes));
  }
  position_ = kFileHeaderBytes;
  Findings again;  // the walk over the chunks reports them
  ChunkCursor cursor(file_, again);
  Chunk chunk;
  uint64_t index = 0;
  uint64_t offset = 0;
  for (; cursor.next(chunk); ++index) {
    const Part* const part = chunk.find(PartType::kFileHeader);
    if (part == nullptr || part->cut ||
        chunk.type != static_cast<uint32_t>(ChunkType::kFileHeader)) {
      continue;
    }
    if (header_text_.empty() && index != 0) {
      findings_->add(Severity::kNote, Rule::kHeaderOrder, chunk.offset,
                     fmt::format("the header chunk is number {} in the file", index + 1));
    }
    header_text_ = text_of(part->bytes);
    offset = part->offset;
  }
  if (header_text_.empty()) {
    findings_->add(Severity::kWarning, Rule::kHeaderMissing, kFileHeaderBytes,
                   "there is no header chunk; times count from an unknown moment");
  } else {
    header_ = parse_header(header_text_, offset, *findings_);
  }
  return {};
}

// u16 characters (0: null), u16 bytes, bytes.
std::optional<std::string> Reader::legacy_text(ByteReader& in) const {
  const auto swapped = [&] { return __builtin_bswap16(in.u16()); };
  if (swapped() == 0) return std::nullopt;
  const Bytes bytes = in.bytes(swapped());
  return std::string(text_of(bytes));
}

Status Reader::open_legacy() {
  ByteReader in(file_);
  in.skip(kFileHeaderBytes);
  const auto word = [&] { return __builtin_bswap32(in.u32()); };
  const auto context = legacy_text(in);
  const uint32_t flags = word();
  const uint32_t low = word();
  const uint32_t high = word();
  const auto metadata = legacy_text(in);
  if (!in.ok()) {
    findings_->add(Severity::kError, Rule::kTruncated, file_.size(),
                   "the file ends within its legacy header");
    return Error{Code::kTruncated, "the file ends within its legacy header"};
  }
  FileHeader header;
  header.flags.clear();
  if ((flags & 1) != 0) header.flags.emplace_back(kFlagHighResolutionTimes);
  if ((flags & 2) != 0) header.flags.emplace_back(kFlagTimesAsCount);
  header.timebase_ms = static_cast<double>(uint64_t{high} << 32 | low);
  header.context.reset();
  if (context) header.context = parse_context(*context, kFileHeaderBytes, *findings_);
  if (metadata && is_json(*metadata)) header.metadata = *metadata;
  header_ = std::move(header);
  const uint64_t offset = in.offset();
  walker_.emplace(file_.subspan(offset), offset, Encoding::kLegacy, strings_, types_, *findings_,
                  true);
  return {};
}

// The next chunk with events that can be read.
bool Reader::next_chunk() {
  walker_.reset();
  if (format_version_ == kLegacyFormatVersion) {
    position_ = file_.size();
    return false;
  }
  while (cursor_.next(chunk_)) {
    ++chunks_;
    position_ = chunk_.offset;
    if (chunk_.type == static_cast<uint32_t>(ChunkType::kEventData) && take_event_chunk()) {
      return true;
    }
  }
  position_ = file_.size();
  return false;
}

bool Reader::take_event_chunk() {
  const Part* const table = chunk_.find(PartType::kStringTable);
  const Part* const buffer = chunk_.find(PartType::kBinaryEventBuffer);
  if (buffer == nullptr) {
    // The viewer takes a JSON event buffer for one, and ignores what is in it.
    const bool json = chunk_.find(PartType::kJsonEventBuffer) != nullptr;
    if (!chunk_.cut) {
      findings_->add(json ? Severity::kWarning : Severity::kError,
                     json ? Rule::kPartUnknown : Rule::kEventBuffer, chunk_.offset,
                     json ? "JSON events within a binary chunk are not read"
                          : "an event chunk without a binary event buffer");
    }
    return false;
  }
  if (chunk_.cut && (table == nullptr || table->cut)) {
    findings_->add(Severity::kError, Rule::kTruncated, buffer->offset,
                   fmt::format("{} bytes of events are left out: their string table is cut off",
                               buffer->bytes.size()));
    return false;
  }
  if (table == nullptr) {
    findings_->add(Severity::kError, Rule::kStringTable, chunk_.offset,
                   "an event chunk without a string table");
  }
  if (buffer->bytes.size() % 4 != 0 && !buffer->cut) {
    findings_->add(Severity::kError, Rule::kEventBufferLength, buffer->offset,
                   "an event buffer whose length is no multiple of 4");
  }
  strings_.assign(table == nullptr ? Bytes() : table->bytes);
  if (strings_.over_limit()) {
    findings_->add(
        Severity::kError, Rule::kLimit, table->offset,
        fmt::format("a string table of more than {} strings; the rest read as null", kMaxStrings));
  }
  walker_.emplace(buffer->bytes, buffer->offset, Encoding::kWords, strings_, types_, *findings_,
                  buffer->cut);
  return true;
}

bool Reader::next_any(Event& event) {
  while (true) {
    if (!walker_ && !next_chunk()) return false;
    if (!walker_->next(event)) {
      if (!next_chunk()) return false;
      continue;
    }
    switch (event.type->role) {
      case Role::kZoneCreate:
        create_zone(event);
        break;
      case Role::kZoneSet:
        set_zone(event);
        break;
      case Role::kDefine:
      case Role::kZoneDelete:
        break;
      default:
        event.zone = current_zone(event);
        return true;
    }
    event.zone = 0;
    return true;
  }
}

bool Reader::next(Event& event) {
  while (next_any(event)) {
    const Role role = event.type->role;
    if (role != Role::kDefine && role != Role::kZoneCreate && role != Role::kZoneSet &&
        role != Role::kZoneDelete) {
      return true;
    }
  }
  return false;
}

uint32_t Reader::add_zone(Zone zone, uint64_t offset) {
  const auto length = [](const std::optional<std::string>& text) {
    return text ? text->size() : 0;
  };
  const size_t bytes = 2 * (length(zone.name) + length(zone.type) + length(zone.location));
  if (zones_.size() >= kMaxZones || bytes > kMaxDefinitionBytes - zone_bytes_) {
    findings_->add(Severity::kError, Rule::kLimit, offset,
                   "more zones than this reader keeps; its events count for the default zone");
    return 0;
  }
  zone_bytes_ += bytes;
  zones_.push_back(std::move(zone));
  return static_cast<uint32_t>(zones_.size() - 1);
}

void Reader::create_zone(const Event& event) {
  if (event.cut) return;
  zone_chosen_ = true;
  Arguments walk = event.arguments();
  Value value;
  walk.next(value);
  Zone zone;
  zone.created = true;
  zone.zone_id = static_cast<uint32_t>(value.integer());
  zone.name = text_or_null(walk);
  zone.type = text_or_null(walk);
  zone.location = text_or_null(walk);
  const uint32_t id = zone.zone_id;
  std::string key;
  append_key(key, zone.name);
  append_key(key, zone.type);
  append_key(key, zone.location);
  uint32_t index = 0;
  const auto known = zone_of_key_.find(key);
  if (known != zone_of_key_.end()) {
    index = known->second;
    if (id >= zone_of_id_.size() || zone_of_id_[id] != index) {
      findings_->add_lazily(Severity::kWarning, Rule::kZoneMerged, event.offset, [&] {
        return fmt::format(
            "zone {} has name, type and location of an earlier one and merges with it", id);
      });
    }
  } else if (!zones_[0].created) {
    zones_[0] = std::move(zone);
    zone_of_key_[std::move(key)] = 0;
  } else {
    index = add_zone(std::move(zone), event.offset);
    if (index != 0) zone_of_key_[std::move(key)] = index;
  }
  if (zone_of_id_.size() <= id) zone_of_id_.resize(id + 1, kNoZone);
  zone_of_id_[id] = index;
}

void Reader::set_zone(const Event& event) {
  if (event.cut) return;
  zone_chosen_ = true;
  Arguments walk = event.arguments();
  Value value;
  walk.next(value);
  current_id_ = static_cast<uint32_t>(value.integer());
  current_ = current_id_ < zone_of_id_.size() ? zone_of_id_[current_id_] : kNoZone;
}

uint32_t Reader::current_zone(const Event& event) {
  if (current_ == kNoZone) {
    findings_->add(Severity::kError, Rule::kZoneUndefined, event.offset,
                   fmt::format("events in zone {}, which was never created", current_id_));
    Zone zone;
    zone.undefined = true;
    zone.zone_id = current_id_;
    current_ = add_zone(std::move(zone), event.offset);
    if (zone_of_id_.size() <= current_id_) zone_of_id_.resize(current_id_ + 1, kNoZone);
    zone_of_id_[current_id_] = current_;
  } else if (!zone_chosen_) {
    zone_chosen_ = true;
    findings_->add(Severity::kNote, Rule::kZoneMissing, event.offset,
                   "events before any zone; they count for the default zone");
  }
  return current_;
}

}  // namespace collect::wtf
