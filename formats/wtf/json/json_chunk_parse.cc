#include "formats/wtf/json/json_chunk_parse.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "formats/wtf/binary/event_walker.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

std::optional<std::string> text_value(const JsonPiece& piece) {
  JsonCursor cursor(piece.text);
  std::string text;
  if (cursor.peek() != JsonKind::kString || !cursor.string(text)) return std::nullopt;
  return text;
}

void append(std::vector<uint8_t>& bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

}  // namespace

JsonPiece take_piece(JsonCursor& cursor) {
  cursor.peek();
  JsonPiece piece;
  piece.offset = cursor.offset();
  cursor.raw(piece.text);
  return piece;
}

std::optional<int64_t> whole_number(const JsonPiece& piece) {
  constexpr double kExact = 9007199254740992.0;  // every whole number below is a double
  if (piece.empty() || !(piece.text[0] == '-' || (piece.text[0] >= '0' && piece.text[0] <= '9'))) {
    return std::nullopt;
  }
  if (const auto value = json_integer(piece.text)) return value;
  const auto value = json_double(piece.text);
  if (!value || *value != std::floor(*value) || std::fabs(*value) > kExact) return std::nullopt;
  return static_cast<int64_t>(*value);
}

Status ChunkParser::put(const ChunkMembers& members) {
  ChunkOut chunk;
  std::vector<Part> parts;
  if (!read_head(members, chunk) || !read_parts(members.parts, parts)) return {};
  std::vector<std::vector<uint8_t>> bytes(parts.size());
  size_t last_buffer = parts.size();
  size_t last_table = parts.size();
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].is_buffer()) last_buffer = i;
    if (parts[i].is(PartType::kStringTable)) last_table = i;
  }
  // First, because the events name its strings.
  if (last_table != parts.size() && !put_part(parts[last_table], bytes[last_table])) return {};
  load_table(last_table == parts.size() ? Bytes() : Bytes(bytes[last_table]));
  std::vector<PartOut> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i == last_table || !put_part(parts[i], bytes[i])) continue;
    if (i == last_buffer && !parts[i].json_events) learn(parts[i], bytes[i]);
  }
  // Known only now: events may have named texts that the table did not have.
  const std::string table = parser_.appended() ? parser_.table_bytes() : std::string();
  if (parser_.over_limit()) {
    wrong(Rule::kLimit, members.offset,
          fmt::format("a chunk with more than {} strings is left out", kMaxJsonStrings));
    return {};
  }
  if (parser_.appended() && last_table == parts.size()) {
    out.push_back({static_cast<uint32_t>(PartType::kStringTable), bytes_of(table)});
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const uint32_t type =
        parts[i].json_events ? static_cast<uint32_t>(PartType::kBinaryEventBuffer) : parts[i].type;
    out.push_back(
        {type, i == last_table && parser_.appended() ? bytes_of(table) : Bytes(bytes[i])});
  }
  Status written = write_chunk(sink_, chunk, out);
  if (!written.ok() && written.code() == Code::kLimit) {
    wrong(Rule::kLimit, members.offset, written.error().message + " is left out");
    return {};
  }
  ++totals_.chunks;
  return written;
}

bool ChunkParser::read_head(const ChunkMembers& members, ChunkOut& chunk) {
  const auto id = whole_number(members.id);
  if (id && *id >= 0 && *id <= UINT32_MAX) {
    chunk.id = static_cast<uint32_t>(*id);
  } else {
    wrong(Rule::kJsonShape, members.offset, "a chunk without a number 'id' gets 0");
  }
  const auto number = whole_number(members.type);
  const auto name = text_value(members.type);
  if (number && *number >= 0 && *number <= UINT32_MAX) {
    chunk.type = static_cast<uint32_t>(*number);
  } else if (name && chunk_type_of(*name) != 0) {
    chunk.type = chunk_type_of(*name);
  } else {
    wrong(name ? Rule::kChunkUnknown : Rule::kJsonShape, members.offset,
          "a chunk whose type is unknown is left out");
    return false;
  }
  chunk.start_time = read_time(members.start);
  chunk.end_time = read_time(members.end);
  return true;
}

// The published library writes times as signed numbers of 32 bits.
uint32_t ChunkParser::read_time(const JsonPiece& piece) {
  if (piece.empty()) return kNoTime;
  const auto time = whole_number(piece);
  if (!time || *time < INT32_MIN || *time > UINT32_MAX) {
    wrong(Rule::kJsonValue, piece.offset, "a chunk's time is no number of 32 bits");
    return kNoTime;
  }
  return static_cast<uint32_t>(*time);
}

bool ChunkParser::read_parts(const JsonPiece& piece, std::vector<Part>& parts) {
  JsonCursor cursor(piece.text, piece.offset);
  if (cursor.peek() != JsonKind::kArray) {
    wrong(Rule::kJsonShape, piece.offset, "a chunk without an array 'parts' is left out");
    return false;
  }
  cursor.enter_array();
  while (cursor.next_element()) {
    if (parts.size() == kMaxParts) {
      wrong(Rule::kLimit, cursor.offset(), "a chunk with more parts than are read is left out");
      return false;
    }
    Part part;
    if (read_part(cursor, part)) parts.push_back(std::move(part));
  }
  return true;
}

bool ChunkParser::read_part(JsonCursor& cursor, Part& part) {
  part.whole = take_piece(cursor);
  JsonCursor members(part.whole.text, part.whole.offset);
  if (members.peek() != JsonKind::kObject) {
    wrong(Rule::kJsonShape, part.whole.offset, "a part that is no object is left out");
    return false;
  }
  JsonPiece type, mode;
  std::string key;
  members.enter_object();
  while (members.next_member(key)) {
    const JsonPiece value = take_piece(members);
    if (key == "type") type = value;
    if (key == "mode") mode = value;
    if (key == "value") part.value = value;
    if (key == "events") part.events = value;
    if (key == "byteLength") part.byte_length = whole_number(value);
  }
  const auto number = whole_number(type);
  const auto name = text_value(type);
  if (number && *number >= 0 && *number <= UINT32_MAX) {
    part.type = static_cast<uint32_t>(*number);
  } else if (name && part_type_of(*name) != 0) {
    part.type = part_type_of(*name);
  } else {
    wrong(name ? Rule::kPartUnknown : Rule::kJsonShape, part.whole.offset,
          "a part whose type is unknown is left out");
    return false;
  }
  part.base64 = text_value(mode) == "base64";
  part.json_events = part.is(PartType::kJsonEventBuffer) && !part.base64;
  return true;
}

// The last string table of the chunk is the one that events mean, wherever it is.
void ChunkParser::load_table(Bytes bytes) {
  const StringTable table(bytes);
  std::vector<std::string> strings;
  const size_t count = std::min(table.size(), kMaxJsonStrings);
  for (size_t i = 0; i < count; ++i) strings.emplace_back(table[i]);
  parser_.begin(std::move(strings));
}

bool ChunkParser::put_table(const Part& part, std::vector<std::string>& strings) {
  JsonCursor cursor(part.value.text, part.value.offset);
  if (part.value.empty() || cursor.peek() != JsonKind::kArray) {
    wrong(Rule::kJsonShape, part.whole.offset, "a string table without an array 'value'");
    return false;
  }
  cursor.enter_array();
  while (cursor.next_element()) {
    if (strings.size() == kMaxJsonStrings) {
      wrong(Rule::kLimit, cursor.offset(), "a string table of more strings than are read");
      return false;
    }
    std::string text;
    if (cursor.peek() != JsonKind::kString) {
      wrong(Rule::kJsonValue, cursor.offset(), "an entry of a string table is no string");
      cursor.skip();
    } else {
      cursor.string(text);
    }
    if (text.find('\0') != std::string::npos) {
      wrong(Rule::kJsonValue, cursor.offset(), "a string holds a NUL, which no table can");
      text = safe_text(text);
    }
    strings.push_back(std::move(text));
  }
  return true;
}

bool ChunkParser::put_part(const Part& part, std::vector<uint8_t>& bytes) {
  if (part.json_events) return put_events(part, bytes);
  if (part.base64) return put_base64(part, bytes);
  if (part.is(PartType::kFileHeader)) {
    append(bytes, part.whole.text);
    return true;
  }
  if (part.is(PartType::kStringTable)) {
    std::vector<std::string> strings;
    if (!put_table(part, strings)) return false;
    for (const std::string& text : strings) {
      append(bytes, text);
      bytes.push_back(0);
    }
    return true;
  }
  const auto text = text_value(part.value);
  if (part.is(PartType::kStringResource) && text) {
    append(bytes, *text);
    return true;
  }
  wrong(Rule::kJsonShape, part.whole.offset, "a part without a value that its type can have");
  return false;
}

bool ChunkParser::put_base64(const Part& part, std::vector<uint8_t>& bytes) {
  const auto text = text_value(part.value);
  auto decoded = text ? decode_base64(*text) : std::nullopt;
  if (!decoded) {
    wrong(Rule::kJsonValue, part.whole.offset, "a part's 'value' is not base64; it is left empty");
    return false;
  }
  if (part.byte_length && *part.byte_length != static_cast<int64_t>(decoded->size())) {
    wrong(Rule::kJsonValue, part.whole.offset,
          "a part's 'byteLength' is not the length of its 'value', which counts");
  }
  bytes = std::move(*decoded);
  return true;
}

bool ChunkParser::put_events(const Part& part, std::vector<uint8_t>& bytes) {
  JsonCursor cursor(part.events.text, part.events.offset);
  if (part.events.empty() || cursor.peek() == JsonKind::kNull) return true;
  if (cursor.peek() != JsonKind::kArray) {
    wrong(Rule::kJsonValue, part.events.offset, "'events' is no array; none are read");
    return true;
  }
  cursor.enter_array();
  while (cursor.next_element()) {
    if (!parser_.parse(cursor, bytes)) break;
    ++totals_.events;
    ++totals_.json_events;
  }
  return true;
}

// The definitions in a binary buffer hold for JSON events of later chunks.
void ChunkParser::learn(const Part& part, Bytes buffer) {
  const std::string table = parser_.table_bytes();
  const StringTable strings(bytes_of(table));
  Findings again;  // a reader of the binary file reports them
  EventWalker walker(buffer, part.whole.offset, Encoding::kWords, strings, types_, again);
  for (Event event; walker.next(event);) ++totals_.events;
}

}  // namespace collect::wtf
