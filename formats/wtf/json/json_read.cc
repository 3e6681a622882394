#include <string>

#include "formats/wtf/json/json.h"
#include "formats/wtf/json/json_chunk_parse.h"
#include "formats/wtf/text.h"

namespace collect::wtf {
namespace {

class JsonReader {
 public:
  JsonReader(Bytes json, ByteSink& sink, Findings& findings)
      : cursor_(text_of(json)), sink_(sink), findings_(findings), chunks_(sink, findings) {}

  Result<JsonTotals> run();

 private:
  Status read_first();
  Status begin_file(const JsonPiece& tool, const JsonPiece& format);
  Status read_chunks(JsonCursor& cursor);
  Status read_fragment(JsonCursor& cursor, bool may_hold_chunks);
  void wrong_shape(uint64_t offset, std::string sentence) {
    findings_.add(Severity::kError, Rule::kJsonShape, offset, std::move(sentence));
  }

  JsonCursor cursor_;
  ByteSink& sink_;
  Findings& findings_;
  ChunkParser chunks_;
  bool begun_ = false;
};

Result<JsonTotals> JsonReader::run() {
  COLLECT_TRY(read_first());
  const bool one = !cursor_.ok() || cursor_.at_end();
  while (cursor_.ok() && !cursor_.at_end()) {
    cursor_.restart();
    if (cursor_.peek() == JsonKind::kObject) {
      COLLECT_TRY(read_fragment(cursor_, true));
    } else {
      wrong_shape(cursor_.offset(), "a value that is no chunk is passed over");
      cursor_.skip();
    }
  }
  if (!cursor_.ok()) {
    findings_.add(Severity::kError, Rule::kJsonSyntax, cursor_.offset(),
                  std::string(cursor_.error()) + "; nothing is read from here on");
  }
  if (!begun_) return Error{Code::kDamaged, "the document is no WTF-trace"};
  JsonTotals totals = chunks_.totals();
  totals.mode = one ? JsonMode::kComplete : JsonMode::kPartial;
  return totals;
}

// The first object: the file's header, and in a complete document everything else.
Status JsonReader::read_first() {
  JsonPiece tool, format, chunks;
  std::string key;
  cursor_.enter_object();
  while (cursor_.next_member(key)) {
    if (key == "wtfVersion" || key == "wtf_version") {
      tool = take_piece(cursor_);
    } else if (key == "formatVersion" || key == "format_version") {
      format = take_piece(cursor_);
    } else if (key == "chunks" && !tool.empty() && !format.empty()) {
      COLLECT_TRY(begin_file(tool, format));
      COLLECT_TRY(read_chunks(cursor_));
    } else if (key == "chunks") {
      chunks = take_piece(cursor_);  // before the versions: once they are known
    } else {
      cursor_.skip();
    }
  }
  if (!begun_ && (cursor_.ok() || !format.empty())) COLLECT_TRY(begin_file(tool, format));
  if (!chunks.empty() && cursor_.ok()) {
    JsonCursor cursor(chunks.text, chunks.offset);
    COLLECT_TRY(read_chunks(cursor));
  }
  return {};
}

Status JsonReader::begin_file(const JsonPiece& tool, const JsonPiece& format) {
  if (begun_) return {};
  const auto version = whole_number(format);
  if (version != int64_t{kFormatVersion}) {
    findings_.add(Severity::kError, Rule::kVersion, format.offset,
                  "the document does not say format version 10");
    return Error{Code::kUnsupported, "the document does not say format version 10"};
  }
  const auto number = whole_number(tool);
  if (!number) {
    findings_.add(Severity::kError, Rule::kJsonValue, tool.offset,
                  "the version of the tool is no number; 0 represents it");
  }
  if (number && (*number < 0 || *number > UINT32_MAX)) {
    findings_.add(Severity::kNote, Rule::kJsonLossy, tool.offset,
                  "the binary form holds 32 bits of the tool's version");
  }
  begun_ = true;
  return write_file_header(sink_, static_cast<uint32_t>(number.value_or(0)));
}

Status JsonReader::read_chunks(JsonCursor& cursor) {
  if (cursor.peek() != JsonKind::kArray) {
    wrong_shape(cursor.offset(), "'chunks' is no array");
    cursor.skip();
    return {};
  }
  cursor.enter_array();
  while (cursor.next_element()) {
    if (cursor.peek() == JsonKind::kObject) {
      COLLECT_TRY(read_fragment(cursor, false));
    } else if (cursor.ok()) {
      wrong_shape(cursor.offset(), "a chunk is no object");
      cursor.skip();
    }
  }
  return {};
}

// A chunk, or an object that holds an array of them, as the published library writes fragments.
Status JsonReader::read_fragment(JsonCursor& cursor, bool may_hold_chunks) {
  ChunkMembers chunk;
  cursor.peek();
  chunk.offset = cursor.offset();
  std::string key;
  cursor.enter_object();
  while (cursor.next_member(key)) {
    JsonPiece* const member = key == "id"          ? &chunk.id
                              : key == "type"      ? &chunk.type
                              : key == "startTime" ? &chunk.start
                              : key == "endTime"   ? &chunk.end
                              : key == "parts"     ? &chunk.parts
                              : key == "chunks"    ? &chunk.chunks
                                                   : nullptr;
    if (member == nullptr) {
      cursor.skip();
    } else {
      *member = take_piece(cursor);
    }
  }
  if (!cursor.ok()) return {};  // run() says where and why
  if (chunk.chunks.empty() || !may_hold_chunks) return chunks_.put(chunk);
  JsonCursor inner(chunk.chunks.text, chunk.chunks.offset);
  return read_chunks(inner);
}

}  // namespace

Result<JsonTotals> json_to_binary(Bytes json, ByteSink& sink, Findings& findings) {
  return JsonReader(json, sink, findings).run();
}

}  // namespace collect::wtf
