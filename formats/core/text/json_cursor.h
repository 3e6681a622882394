// A pull reader of JSON over text that the caller keeps: strict RFC 8259, valid UTF-8, nesting
// bounded, no recursion and no memory that grows with the document. After the first error every
// call returns false, and error() and offset() say why and where.
//
//   cursor.enter_object();
//   while (cursor.next_member(key)) { if (key == "n") cursor.number(text); else cursor.skip(); }
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace collect {

inline constexpr size_t kMaxJsonDepth = 64;  // of WTF-trace's documents, header and `any` values
inline constexpr size_t kMostJsonDepth = 1024;

enum class JsonKind : uint8_t { kObject, kArray, kString, kNumber, kTrue, kFalse, kNull, kEnd };

class JsonCursor {
 public:
  // Offsets are counted from `base`, so that a piece of a file says where it is in the file.
  // `max_depth` <= kMostJsonDepth. A text that is to be unescaped and is longer than
  // `max_text_bytes` is an error.
  explicit JsonCursor(std::string_view text, uint64_t base = 0, size_t max_depth = kMaxJsonDepth,
                      size_t max_text_bytes = SIZE_MAX)
      : text_(text), base_(base), max_depth_(max_depth), max_text_bytes_(max_text_bytes) {}

  // What comes next, behind white space. kEnd at the end of the text, and after an error.
  JsonKind peek();

  bool enter_object();
  // False at the end of the object, which is then behind the cursor.
  bool next_member(std::string& key);
  bool enter_array();
  bool next_element();

  bool string(std::string& out);        // unescaped; a lone surrogate is an error
  bool number(std::string_view& text);  // as written
  bool boolean(bool& out);
  bool null();
  bool skip();                       // any value
  bool raw(std::string_view& text);  // any value, as written, without white space around it

  // Nothing but white space is left.
  bool at_end();
  // Forgets the container it is in: for texts that hold one value after the other.
  void restart();

  bool ok() const { return why_ == nullptr; }
  uint64_t offset() const { return base_ + at_; }
  const char* error() const { return why_ == nullptr ? "" : why_; }

 private:
  bool fail(const char* why);
  void space();
  bool begin_value();
  bool open(char bracket, bool object);
  bool close(char bracket);
  bool literal(std::string_view word);
  bool take_string(std::string* out);
  bool escape(std::string* out);
  bool hex4(uint32_t& unit);
  bool take_number(std::string_view& text);

  std::string_view text_;
  uint64_t base_;
  size_t max_depth_;
  size_t max_text_bytes_;
  size_t at_ = 0;
  const char* why_ = nullptr;
  // For each open container: whether it is an object, and whether it has an element already.
  std::bitset<kMostJsonDepth> is_object_;
  std::bitset<kMostJsonDepth> has_element_;
  size_t depth_ = 0;
};

// One whole JSON value with nothing but white space around it.
bool is_json(std::string_view text, size_t max_depth = kMaxJsonDepth);

// A number as written; absent unless it is a whole number in range.
std::optional<int64_t> json_integer(std::string_view number);
// Nothing where the number is too large for the type; one that is too small is 0.
std::optional<double> json_double(std::string_view number);
std::optional<float> json_float(std::string_view number);

}  // namespace collect
