// One event of a file and its arguments. Both borrow from the reader and the file's bytes, and hold
// until the reader's next call. Arguments are decoded when asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/wtf/binary/event_types.h"
#include "formats/wtf/binary/string_table.h"

namespace collect::wtf {

enum class Encoding : uint8_t { kWords, kLegacy };

struct Value {
  enum class State : uint8_t {
    kPresent,
    kNull,
    kCut,         // the event ends before it; reads as null
    kBadOrdinal,  // out of the string table's range; reads as null
    kEmptyEntry,  // a table entry of no bytes; reads as null
    kEmptyAny,    // the empty string where JSON has to be; reads as null
  };

  const Argument* argument = nullptr;
  State state = State::kNull;
  Encoding encoding = Encoding::kWords;
  uint32_t word = 0;      // scalars and ordinals, as in the file
  uint32_t count = 0;     // arrays: elements
  Bytes elements;         // arrays: as in the file
  std::string_view text;  // strings: as in the file. UTF-8, but see utf8()

  bool present() const { return state == State::kPresent; }
  bool is_text() const { return is_string(argument->type); }

  // Scalars that are no float32: bool as 0 or 1, time32 in microseconds.
  int64_t integer() const;
  float real() const;  // float32
  // Array elements; i < count.
  int64_t element(size_t i) const;
  float real_element(size_t i) const;
  // Strings, char, wchar and their arrays, as valid UTF-8: codes of char are Latin-1, lone
  // surrogates become U+FFFD. A string that is not UTF-8 comes out repaired.
  std::string utf8() const;
};

// Walks the arguments of one event.
class Arguments {
 public:
  Arguments(const EventType& type, Bytes bytes, Encoding encoding, const StringTable* strings)
      : type_(&type), bytes_(bytes), encoding_(encoding), strings_(strings) {}

  bool next(Value& value);
  // Bytes of the arguments that next() has passed, with padding. More than there are when cut.
  uint64_t consumed() const { return at_; }

 private:
  void next_word(const Argument& argument, Value& value);
  void next_legacy(const Argument& argument, Value& value);
  bool take_legacy(size_t count, Bytes& bytes);

  const EventType* type_;
  Bytes bytes_;
  Encoding encoding_;
  const StringTable* strings_;
  size_t index_ = 0;
  uint64_t at_ = 0;
};

struct Event {
  const EventType* type = nullptr;
  uint32_t time_us = 0;  // since the file's timebase
  uint32_t zone = 0;     // index into Reader::zones(); 0 from a walker, which knows no zones
  bool cut = false;      // arguments reach beyond the end of the buffer
  Encoding encoding = Encoding::kWords;
  Bytes argument_bytes;
  const StringTable* strings = nullptr;
  uint64_t offset = 0;  // of the event in the file

  Arguments arguments() const { return Arguments(*type, argument_bytes, encoding, strings); }
  // The first argument of that name. Walks; use arguments() for all.
  std::optional<Value> argument(std::string_view name) const;
};

}  // namespace collect::wtf
