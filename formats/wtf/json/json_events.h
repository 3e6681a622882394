// Events between their words and their JSON (FORMAT.md "JSON form"), one at a time. Both directions
// follow the same rule for texts, so that ordinals survive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/core/text/json_cursor.h"
#include "formats/wtf/binary/event.h"
#include "formats/wtf/binary/type_table.h"
#include "formats/wtf/finding.h"

namespace collect::wtf {

// The only NaN with a JSON form of its own.
inline constexpr uint32_t kPlainNan = 0x7FC00000;

// Tables of more strings are written, and read, in base64 only, with their events.
inline constexpr size_t kMaxJsonStrings = size_t{1} << 20;
// JSON texts are put into the document as they are up to this depth, deeper ones as strings: the
// document around them has its own levels, and kMaxJsonDepth holds for the sum.
inline constexpr size_t kMaxInlineDepth = 48;

// Which ordinal a text in JSON means: the first string of the table that was not named in order
// yet, if that is it; else the first equal one. Tables of writers that repeat strings and of those
// that do not are both named without numbers that way.
class TextOrdinals {
 public:
  void clear();
  void add(std::string_view text);  // the next entry of the table; borrowed
  size_t size() const { return texts_.size(); }
  std::string_view operator[](size_t ordinal) const { return texts_[ordinal]; }
  // The ordinal meant; absent when no entry is equal.
  std::optional<uint32_t> meant(std::string_view text) const;
  // A text was named that means `ordinal`.
  void took(uint32_t ordinal) { next_ += ordinal == next_ ? 1 : 0; }

  // For texts of an event that turns out not to be printable.
  size_t mark() const { return next_; }
  void back_to(size_t mark) { next_ = mark; }

 private:
  std::vector<std::string_view> texts_;
  std::unordered_map<std::string_view, uint32_t> first_;
  size_t next_ = 0;
};

// Appends one event as a JSON object. `ordinals` is of the event's chunk.
void print_event(std::string& out, const Event& event, TextOrdinals& ordinals);
// What cannot be read behind the last event.
void print_rest(std::string& out, Bytes rest);

// Puts the JSON events of one chunk after the other into words.
class EventParser {
 public:
  EventParser(TypeTable& types, Findings& findings) : types_(types), findings_(findings) {}

  // A new chunk: its string table so far; texts that it does not have are appended to it. Borrowed
  // until the next begin().
  void begin(std::vector<std::string>&& table);
  // One element of the array "events", appended to `buffer`. An event that does not fit its type is
  // a finding and left out. False when the text is no JSON.
  bool parse(JsonCursor& cursor, std::vector<uint8_t>& buffer);
  // The chunk's string table with what was appended.
  std::string table_bytes() const;
  bool appended() const { return appended_; }
  bool over_limit() const { return over_limit_; }

 private:
  struct Members {
    std::optional<int64_t> wire_id, time;
    std::string name;
    bool has_name = false;
    std::string_view arguments;  // JSON
    uint64_t arguments_offset = 0;
    std::optional<std::string> raw, rest;  // base64
  };

  bool read_members(JsonCursor& cursor, Members& members);
  const EventType* type_of(const Members& members) const;
  bool put_event(const Members& members, uint64_t offset, std::vector<uint8_t>& buffer);
  bool put_arguments(const EventType& type, const Members& members, std::vector<uint8_t>& buffer);
  bool put_argument(const Argument& argument, JsonCursor& cursor, std::vector<uint8_t>& buffer);
  bool put_scalar(const Argument& argument, JsonCursor& cursor, std::vector<uint8_t>& buffer);
  bool put_number(ArgType type, JsonCursor& cursor, uint32_t& word);
  bool put_array(const Argument& argument, JsonCursor& cursor, std::vector<uint8_t>& buffer);
  bool put_characters(ArgType type, JsonCursor& cursor, std::vector<uint8_t>& bytes, size_t& count);
  bool put_text(const Argument& argument, JsonCursor& cursor, std::vector<uint8_t>& buffer);
  uint32_t ordinal_of(std::string_view text);
  void learn(const EventType& type, uint64_t offset, Bytes words);
  bool misfit(uint64_t offset, std::string why);

  TypeTable& types_;
  Findings& findings_;
  std::vector<std::string> table_;
  std::vector<std::unique_ptr<std::string>> added_;
  TextOrdinals ordinals_;
  bool appended_ = false;
  bool over_limit_ = false;
};

}  // namespace collect::wtf
