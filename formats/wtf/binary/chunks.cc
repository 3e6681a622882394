#include "formats/wtf/binary/chunks.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

namespace collect::wtf {
namespace {

// A chunk found by searching must not have more parts than this: real ones have a handful.
constexpr uint32_t kMaxPlausibleParts = 256;

}  // namespace

const Part* Chunk::find(PartType part) const {
  for (size_t i = parts.size(); i-- > 0;) {
    if (parts[i].type == static_cast<uint32_t>(part)) return &parts[i];
  }
  return nullptr;
}

// Whether a whole chunk of a known type, with known parts within it, begins here.
bool ChunkCursor::plausible(uint64_t offset) const {
  const uint64_t left = file_.size() - offset;
  if (left < kChunkHeaderBytes + kPartEntryBytes) return false;
  const uint8_t* const at = file_.data() + offset;
  const uint32_t type = load_le<uint32_t>(at + 4);
  const uint32_t length = load_le<uint32_t>(at + 8);
  const uint32_t parts = load_le<uint32_t>(at + 20);
  if (chunk_type_name(type).empty() || length % 4 != 0 || length > left) return false;
  if (parts == 0 || parts > kMaxPlausibleParts) return false;
  const uint64_t table = kChunkHeaderBytes + uint64_t{parts} * kPartEntryBytes;
  if (length < table) return false;
  for (uint32_t i = 0; i < parts; ++i) {
    const uint8_t* const entry = at + kChunkHeaderBytes + i * kPartEntryBytes;
    const uint64_t end = uint64_t{load_le<uint32_t>(entry + 4)} + load_le<uint32_t>(entry + 8);
    if (part_type_name(load_le<uint32_t>(entry)).empty() || end > length - table) return false;
  }
  return true;
}

// The next place at or behind `from` that holds up as a chunk; the file's end if there is none.
uint64_t ChunkCursor::search(uint64_t from) const {
  for (uint64_t offset = from; offset + kChunkHeaderBytes <= file_.size(); offset += 4) {
    if (plausible(offset)) return offset;
  }
  return file_.size();
}

// No chunk can begin here. True when one was found further on.
bool ChunkCursor::damaged() {
  const uint64_t found = search(at_ + 4);
  const uint64_t skipped = found - at_;
  if (found == file_.size()) {
    findings_->add(Severity::kError, Rule::kTrailing, at_,
                   fmt::format("{} bytes behind the last chunk are no chunk", skipped));
  } else {
    findings_->add(
        Severity::kError, Rule::kChunkHeader, at_,
        fmt::format("no chunk begins here; {} bytes are passed over, up to the next one", skipped));
  }
  at_ = found;
  return found != file_.size();
}

bool ChunkCursor::next(Chunk& chunk) {
  uint64_t table = 0;
  while (true) {
    if (at_ >= file_.size()) return false;
    if (file_.size() - at_ < kChunkHeaderBytes) {
      findings_->add(Severity::kError, Rule::kTrailing, at_,
                     fmt::format("{} bytes behind the last chunk", file_.size() - at_));
      at_ = file_.size();
      return false;
    }
    const uint8_t* const at = file_.data() + at_;
    chunk.id = load_le<uint32_t>(at);
    chunk.type = load_le<uint32_t>(at + 4);
    chunk.length = load_le<uint32_t>(at + 8);
    chunk.start_time = load_le<uint32_t>(at + 12);
    chunk.end_time = load_le<uint32_t>(at + 16);
    table = kChunkHeaderBytes + uint64_t{load_le<uint32_t>(at + 20)} * kPartEntryBytes;
    if (chunk.length >= table) break;
    if (!damaged()) return false;
  }
  chunk.offset = at_;
  chunk.cut = chunk.length > file_.size() - at_;
  uint64_t end = at_ + chunk.length;
  if (chunk.cut) {
    end = search(at_ + kChunkHeaderBytes);  // this one takes that at least
    const bool goes_on = end != file_.size();
    findings_->add(
        Severity::kError, goes_on ? Rule::kChunkHeader : Rule::kTruncated, at_,
        fmt::format("chunk {} says {} bytes, and {}{}", chunk.id, chunk.length, end - at_,
                    goes_on ? " are there before the next one" : " are there"));
  } else if (chunk.length % 4 != 0) {
    findings_->add(Severity::kError, Rule::kChunkHeader, at_,
                   fmt::format("chunk {} has a length that is no multiple of 4", chunk.id));
  }
  read_parts(chunk, end);
  check_parts(chunk);
  at_ = end;
  return true;
}

void ChunkCursor::read_parts(Chunk& chunk, uint64_t end) {
  chunk.parts.clear();
  const uint32_t stated = load_le<uint32_t>(file_.data() + chunk.offset + 20);
  const uint64_t table = chunk.offset + kChunkHeaderBytes;
  const uint64_t there = (end - table) / kPartEntryBytes;
  const uint64_t count = std::min<uint64_t>({stated, there, kMaxParts});
  if (stated > kMaxParts) {
    findings_->add(Severity::kError, Rule::kLimit, chunk.offset,
                   fmt::format("a chunk with {} parts; {} are read", stated, kMaxParts));
  }
  const uint64_t data = table + uint64_t{stated} * kPartEntryBytes;
  for (uint64_t i = 0; i < count; ++i) {
    const uint8_t* const entry = file_.data() + table + i * kPartEntryBytes;
    Part part;
    part.type = load_le<uint32_t>(entry);
    const uint64_t length = load_le<uint32_t>(entry + 8);
    part.offset = data + load_le<uint32_t>(entry + 4);
    const uint64_t part_end = part.offset + length;
    if (part_end > chunk.offset + chunk.length) {
      findings_->add(Severity::kError, Rule::kPartRange, table + i * kPartEntryBytes,
                     fmt::format("part {} reaches {} bytes out of its chunk", i,
                                 part_end - chunk.offset - chunk.length));
    }
    part.cut = part_end > end;
    if (part.cut && part.offset >= end) continue;  // nothing of it is there
    part.bytes = file_.subspan(part.offset, std::min(part_end, end) - part.offset);
    chunk.parts.push_back(part);
  }
}

// Known types in their places, one event buffer, and the layout that every writer uses: parts in
// order, each padded to 4.
void ChunkCursor::check_parts(const Chunk& chunk) {
  if (chunk_type_name(chunk.type).empty()) {
    findings_->add(Severity::kNote, Rule::kChunkUnknown, chunk.offset,
                   fmt::format("a chunk of type {} is passed over", chunk.type));
    return;
  }
  const bool header = chunk.type == static_cast<uint32_t>(ChunkType::kFileHeader);
  uint64_t expected =
      chunk.offset + kChunkHeaderBytes +
      uint64_t{load_le<uint32_t>(file_.data() + chunk.offset + 20)} * kPartEntryBytes;
  bool regular = true;
  size_t buffers = 0;
  size_t tables = 0;
  for (const Part& part : chunk.parts) {
    regular = regular && part.offset == expected;
    expected = part.offset + padded(part.bytes.size());
    for (uint64_t at = part.offset + part.bytes.size(); at < expected && at < file_.size(); ++at) {
      regular = regular && file_[at] == 0;
    }
    const bool header_part = part.type == static_cast<uint32_t>(PartType::kFileHeader);
    if (part_type_name(part.type).empty()) {
      findings_->add(Severity::kNote, Rule::kPartUnknown, part.offset,
                     fmt::format("a part of type {} is passed over", part.type));
    } else if (header_part != header) {
      findings_->add(Severity::kError, Rule::kPartPlacement, part.offset,
                     fmt::format("a part '{}' in a chunk '{}'", part_type_name(part.type),
                                 chunk_type_name(chunk.type)));
    }
    if (part.type == static_cast<uint32_t>(PartType::kBinaryEventBuffer)) ++buffers;
    if (part.type == static_cast<uint32_t>(PartType::kStringTable)) ++tables;
  }
  if (buffers > 1 || tables > 1) {
    findings_->add(
        Severity::kWarning, Rule::kPartRepeated, chunk.offset,
        fmt::format("a chunk with {} event buffers and {} string tables; the last of each is used",
                    buffers, tables));
  }
  if (!chunk.cut && !(regular && expected == chunk.offset + chunk.length)) {
    findings_->add(Severity::kNote, Rule::kPartLayout, chunk.offset,
                   "the parts overlap, leave gaps or are not padded to 4 bytes with zeros");
  }
}

}  // namespace collect::wtf
