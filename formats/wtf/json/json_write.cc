#include <string>

#include "formats/wtf/binary/chunks.h"
#include "formats/wtf/binary/event_walker.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/json/json_events.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

constexpr size_t kOutBytes = 64 << 10;  // handed to the sink at once

class JsonWriter {
 public:
  JsonWriter(const JsonOptions& options, ByteSink& sink, Findings& findings)
      : options_(options), sink_(sink), findings_(findings) {}

  void begin(uint32_t tool_version);
  Status chunk(const Chunk& chunk);
  Status end();
  const JsonTotals& totals() const { return totals_; }

 private:
  bool lines() const { return options_.mode == JsonMode::kComplete; }
  Status put_chunk(const Chunk& chunk);
  Status put_part(const Chunk& chunk, const Part& part, bool last_buffer);
  void put_type(uint32_t type, std::string_view name);
  void put_header(const Part& part);
  void put_table(const Part& part);
  void put_base64(const Part& part);
  Status put_events(const Part& part);
  void count_events(const Part& part);
  Status spill_if_full();

  const JsonOptions options_;
  ByteSink& sink_;
  Findings& findings_;
  JsonTotals totals_;
  std::string out_;
  TypeTable types_;
  StringTable strings_;
  TextOrdinals ordinals_;
};

// One over its own limit has kMaxStrings, which are more.
bool usable_table(const StringTable& strings) {
  return strings.size() <= kMaxJsonStrings;
}
static_assert(kMaxStrings > kMaxJsonStrings);

// Whether the JSON form of the header part can be its own text.
bool stands_for_itself(std::string_view json) {
  if (json.empty() || json.front() != '{' || json.back() != '}') return false;
  if (!is_json(json, kMaxInlineDepth)) return false;
  JsonCursor cursor(json);
  std::string key, type;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    if (key == "mode") return false;
    if (key == "type" && cursor.peek() == JsonKind::kString) {
      cursor.string(type);
    } else {
      cursor.skip();
    }
  }
  return type == part_type_name(static_cast<uint32_t>(PartType::kFileHeader));
}

Status JsonWriter::spill_if_full() {
  if (out_.size() < kOutBytes) return {};
  COLLECT_TRY(sink_.write(bytes_of(out_)));
  out_.clear();
  return {};
}

void JsonWriter::begin(uint32_t tool_version) {
  out_ += lines() ? "{\n  \"wtfVersion\": " : "{\"wtfVersion\":";
  append_number(out_, int64_t{tool_version});
  out_ += lines() ? ",\n  \"formatVersion\": " : ",\"formatVersion\":";
  append_number(out_, int64_t{kFormatVersion});
  out_ += lines() ? ",\n  \"chunks\": [" : "}\n";
}

Status JsonWriter::end() {
  if (lines()) out_ += totals_.chunks == 0 ? "]\n}\n" : "\n  ]\n}\n";
  return sink_.write(bytes_of(out_));
}

void JsonWriter::put_type(uint32_t type, std::string_view name) {
  out_ += "\"type\":";
  if (name.empty()) {
    append_number(out_, int64_t{type});
  } else {
    append_json_string(out_, name);
  }
}

// A chunk that is cut off gives its whole parts, and of its event buffer the whole events.
Status JsonWriter::chunk(const Chunk& chunk) {
  const Part* const table = chunk.find(PartType::kStringTable);
  const bool events = chunk.type == static_cast<uint32_t>(ChunkType::kEventData);
  if (chunk.cut && (chunk.parts.empty() || (events && (table == nullptr || table->cut)))) {
    findings_.add(Severity::kError, Rule::kTruncated, chunk.offset,
                  "the cut chunk is left out: its events or their string table are missing");
    return {};
  }
  strings_.assign(table == nullptr ? Bytes() : table->bytes);
  ordinals_.clear();
  if (usable_table(strings_)) {
    for (size_t i = 0; i < strings_.size(); ++i) ordinals_.add(strings_[i]);
  }
  if (lines()) out_ += totals_.chunks == 0 ? "\n    " : ",\n    ";
  ++totals_.chunks;
  COLLECT_TRY(put_chunk(chunk));
  if (!lines()) out_ += '\n';
  return spill_if_full();
}

Status JsonWriter::put_chunk(const Chunk& chunk) {
  out_ += "{\"id\":";
  append_number(out_, int64_t{chunk.id});
  out_ += ',';
  put_type(chunk.type, chunk_type_name(chunk.type));
  if (chunk.start_time != kNoTime) {
    out_ += ",\"startTime\":";
    append_number(out_, int64_t{chunk.start_time});
  }
  if (chunk.end_time != kNoTime) {
    out_ += ",\"endTime\":";
    append_number(out_, int64_t{chunk.end_time});
  }
  out_ += ",\"parts\":[";
  const Part* const buffer = chunk.find(PartType::kBinaryEventBuffer);
  bool first = true;
  for (const Part& part : chunk.parts) {
    if (part.cut && &part != buffer) {
      findings_.add(Severity::kError, Rule::kTruncated, part.offset, "a cut part is left out");
      continue;
    }
    if (!first) out_ += ',';
    if (lines()) out_ += "\n      ";
    first = false;
    COLLECT_TRY(put_part(chunk, part, &part == buffer));
  }
  out_ += "]}";
  return {};
}

Status JsonWriter::put_part(const Chunk& chunk, const Part& part, bool last_buffer) {
  const bool events = chunk.type == static_cast<uint32_t>(ChunkType::kEventData) && last_buffer;
  switch (static_cast<PartType>(part.type)) {
    case PartType::kFileHeader:
      put_header(part);
      return {};
    case PartType::kStringTable:
      put_table(part);
      return {};
    case PartType::kBinaryEventBuffer:
      if (events && options_.events == JsonEvents::kEvents && usable_table(strings_)) {
        return put_events(part);
      }
      if (events) count_events(part);
      break;
    case PartType::kStringResource:
      if (!is_utf8(text_of(part.bytes))) break;
      out_ += "{\"type\":\"string_resource\",\"value\":";
      append_json_string(out_, text_of(part.bytes));
      out_ += '}';
      return spill_if_full();
    default:
      break;
  }
  put_base64(part);
  return spill_if_full();
}

void JsonWriter::put_header(const Part& part) {
  if (stands_for_itself(text_of(part.bytes))) {
    out_.append(text_of(part.bytes));
  } else {
    put_base64(part);
  }
}

void JsonWriter::put_base64(const Part& part) {
  out_ += '{';
  put_type(part.type, part_type_name(part.type));
  out_ += ",\"mode\":\"base64\",\"byteLength\":";
  append_number(out_, static_cast<int64_t>(part.bytes.size()));
  out_ += ",\"value\":\"";
  append_base64(out_, part.bytes);
  out_ += "\"}";
}

void JsonWriter::put_table(const Part& part) {
  const StringTable strings(part.bytes);
  bool plain = usable_table(strings) && !strings.unterminated();
  for (size_t i = 0; plain && i < strings.size(); ++i) plain = is_utf8(strings[i]);
  if (!plain) return put_base64(part);
  out_ += "{\"type\":\"string_table\",\"value\":[";
  for (size_t i = 0; i < strings.size(); ++i) {
    if (i != 0) out_ += ',';
    append_json_string(out_, strings[i]);
  }
  out_ += "]}";
}

Status JsonWriter::put_events(const Part& part) {
  out_ += "{\"type\":\"json_event_buffer\",\"events\":[";
  EventWalker walker(part.bytes, part.offset, Encoding::kWords, strings_, types_, findings_,
                     part.cut);
  Bytes rest = part.bytes;
  bool first = true;
  const auto separate = [&] {
    if (!first) out_ += ',';
    if (lines()) out_ += "\n        ";
    first = false;
  };
  for (Event event; walker.next(event); ++totals_.events) {
    if (event.cut) break;
    separate();
    print_event(out_, event, ordinals_);
    rest = walker.rest();
    COLLECT_TRY(spill_if_full());
  }
  if (!rest.empty() && !part.cut) {
    separate();
    print_rest(out_, rest);
  }
  out_ += "]}";
  return {};
}

// The definitions in a buffer that stays binary hold for later chunks too.
void JsonWriter::count_events(const Part& part) {
  EventWalker walker(part.bytes, part.offset, Encoding::kWords, strings_, types_, findings_,
                     part.cut);
  for (Event event; walker.next(event);) ++totals_.events;
}

}  // namespace

Result<JsonTotals> binary_to_json(Bytes file, const JsonOptions& options, ByteSink& sink,
                                  Findings& findings) {
  if (file.size() < kFileHeaderBytes) {
    findings.add(Severity::kError, Rule::kFileHeader, 0, "the file is too short for a header");
    return Error{Code::kTruncated, "the file is too short for a header"};
  }
  if (file_kind(file) != FileKind::kBinary) {
    findings.add(Severity::kError, Rule::kVersion, 0, "this is no file of format version 10");
    return Error{Code::kUnsupported, "this is no WTF-trace file of format version 10"};
  }
  JsonWriter writer(options, sink, findings);
  writer.begin(load_le<uint32_t>(file.data() + 4));
  ChunkCursor cursor(file, findings);
  for (Chunk chunk; cursor.next(chunk);) COLLECT_TRY(writer.chunk(chunk));
  COLLECT_TRY(writer.end());
  return writer.totals();
}

}  // namespace collect::wtf
