// One chunk of the JSON form, put into binary. What it keeps from chunk to chunk are the event
// types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/wtf/binary/chunk_encoder.h"
#include "formats/wtf/binary/chunks.h"
#include "formats/wtf/finding.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/json/json_events.h"

namespace collect::wtf {

// A piece of the document that is known to be JSON.
struct JsonPiece {
  std::string_view text;
  uint64_t offset = 0;
  bool empty() const { return text.empty(); }
};

// The next value, as written.
JsonPiece take_piece(JsonCursor& cursor);
// A whole number of any spelling; absent for every other kind of value.
std::optional<int64_t> whole_number(const JsonPiece& piece);

struct ChunkMembers {
  uint64_t offset = 0;
  JsonPiece id, type, start, end, parts;
  JsonPiece chunks;  // of an object that is not a chunk but holds some
};

class ChunkParser {
 public:
  ChunkParser(ByteSink& sink, Findings& findings)
      : sink_(sink), findings_(findings), parser_(types_, findings) {}

  // Writes the chunk, or says in the findings why not. Errors are the sink's.
  Status put(const ChunkMembers& members);
  const JsonTotals& totals() const { return totals_; }

 private:
  struct Part {
    uint32_t type = 0;
    bool json_events = false;
    bool base64 = false;
    std::optional<int64_t> byte_length;
    JsonPiece whole, value, events;

    bool is(PartType wanted) const { return type == static_cast<uint32_t>(wanted); }
    bool is_buffer() const { return json_events || is(PartType::kBinaryEventBuffer); }
  };

  bool read_head(const ChunkMembers& members, ChunkOut& chunk);
  uint32_t read_time(const JsonPiece& piece);
  bool read_parts(const JsonPiece& piece, std::vector<Part>& parts);
  bool read_part(JsonCursor& cursor, Part& part);
  void load_table(Bytes bytes);
  bool put_part(const Part& part, std::vector<uint8_t>& bytes);
  bool put_base64(const Part& part, std::vector<uint8_t>& bytes);
  bool put_table(const Part& part, std::vector<std::string>& strings);
  bool put_events(const Part& part, std::vector<uint8_t>& bytes);
  void learn(const Part& part, Bytes buffer);
  void wrong(Rule rule, uint64_t offset, std::string sentence) {
    findings_.add(Severity::kError, rule, offset, std::move(sentence));
  }

  ByteSink& sink_;
  Findings& findings_;
  JsonTotals totals_;
  TypeTable types_;
  EventParser parser_;
};

}  // namespace collect::wtf
