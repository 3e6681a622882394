#include "formats/core/text/json_cursor.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "formats/core/text/utf8_text.h"

namespace collect {
namespace {

bool digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

bool JsonCursor::fail(const char* why) {
  if (why_ == nullptr) why_ = why;
  return false;
}

void JsonCursor::space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

bool JsonCursor::begin_value() {
  if (!ok()) return false;
  space();
  return at_ < text_.size() || fail("the text ends where a value is expected");
}

JsonKind JsonCursor::peek() {
  if (!ok()) return JsonKind::kEnd;
  space();
  if (at_ >= text_.size()) return JsonKind::kEnd;
  switch (text_[at_]) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
      return JsonKind::kTrue;
    case 'f':
      return JsonKind::kFalse;
    case 'n':
      return JsonKind::kNull;
    default:
      return JsonKind::kNumber;
  }
}

bool JsonCursor::open(char bracket, bool object) {
  if (!begin_value()) return false;
  if (text_[at_] != bracket) return fail(object ? "an object is expected" : "an array is expected");
  if (depth_ == max_depth_) return fail("nested too deeply");
  ++at_;
  is_object_[depth_] = object;
  has_element_[depth_] = false;
  ++depth_;
  return true;
}

// True when the container ends here; steps over the comma otherwise.
bool JsonCursor::close(char bracket) {
  space();
  if (at_ >= text_.size()) return fail("the text ends within a container"), true;
  if (text_[at_] == bracket) {
    ++at_;
    --depth_;
    return true;
  }
  if (has_element_[depth_ - 1]) {
    if (text_[at_] != ',') return fail("a comma is expected"), true;
    ++at_;
    space();
  }
  has_element_[depth_ - 1] = true;
  return false;
}

bool JsonCursor::enter_object() {
  return open('{', true);
}
bool JsonCursor::enter_array() {
  return open('[', false);
}

bool JsonCursor::next_member(std::string& key) {
  if (!ok() || close('}')) return false;
  if (!take_string(&key)) return false;
  space();
  if (at_ >= text_.size() || text_[at_] != ':') return fail("a colon is expected");
  ++at_;
  return true;
}

bool JsonCursor::next_element() {
  return ok() && !close(']');
}

bool JsonCursor::string(std::string& out) {
  out.clear();
  return begin_value() && take_string(&out);
}

bool JsonCursor::take_string(std::string* out) {
  if (at_ >= text_.size() || text_[at_] != '"') return fail("a string is expected");
  if (out != nullptr) out->clear();
  ++at_;
  size_t plain = at_;
  while (at_ < text_.size()) {
    const auto c = static_cast<uint8_t>(text_[at_]);
    if (c == '"' || c == '\\') {
      if (out != nullptr && out->size() + (at_ - plain) > max_text_bytes_) {
        return fail("a text is too long");
      }
      if (out != nullptr) out->append(text_.substr(plain, at_ - plain));
      ++at_;
      if (c == '"') return true;
      if (!escape(out)) return false;
      plain = at_;
    } else if (c < 0x20) {
      return fail("a control character within a string");
    } else if (c < 0x80) {
      ++at_;
    } else {
      const Utf8Step step = utf8_step(text_.substr(at_, 4));
      if (!step.is_valid) return fail("a string is not UTF-8");
      at_ += step.bytes;
    }
  }
  return fail("the text ends within a string");
}

bool JsonCursor::hex4(uint32_t& unit) {
  if (text_.size() - at_ < 4) return fail("an escape is cut off");
  const char* const begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, begin + 4, unit, 16);
  if (error != std::errc() || end != begin + 4) return fail("an escape is not hexadecimal");
  at_ += 4;
  return true;
}

bool JsonCursor::escape(std::string* out) {
  if (at_ >= text_.size()) return fail("the text ends within a string");
  const char c = text_[at_++];
  constexpr std::string_view kShort = "\"\\/bfnrt";
  constexpr std::string_view kMeaning = "\"\\/\b\f\n\r\t";
  if (c != 'u') {
    const size_t which = kShort.find(c);
    if (which == std::string_view::npos) return fail("an unknown escape");
    if (out != nullptr) *out += kMeaning[which];
    return true;
  }
  uint32_t code = 0;
  if (!hex4(code)) return false;
  if (code >= 0xDC00 && code < 0xE000) return fail("a lone surrogate");
  if (code >= 0xD800 && code < 0xDC00) {
    if (text_.substr(at_, 2) != "\\u") return fail("a lone surrogate");
    at_ += 2;
    uint32_t low = 0;
    if (!hex4(low)) return false;
    if (low < 0xDC00 || low >= 0xE000) return fail("a lone surrogate");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  if (out != nullptr) append_code_point(code, *out);
  return true;
}

bool JsonCursor::number(std::string_view& text) {
  return begin_value() && take_number(text);
}

bool JsonCursor::take_number(std::string_view& text) {
  const size_t begin = at_;
  const auto digits = [&] {
    const size_t first = at_;
    while (at_ < text_.size() && digit(text_[at_])) ++at_;
    return at_ != first;
  };
  if (text_[at_] == '-') ++at_;
  const bool zero = at_ < text_.size() && text_[at_] == '0';
  const size_t first = at_;
  if (!digits()) return fail("a value is expected");
  if (zero && at_ - first > 1) return fail("a number begins with 0");
  if (at_ < text_.size() && text_[at_] == '.') {
    ++at_;
    if (!digits()) return fail("a number has no digits behind its point");
  }
  if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
    ++at_;
    if (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) ++at_;
    if (!digits()) return fail("a number has no exponent");
  }
  text = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonCursor::literal(std::string_view word) {
  if (text_.substr(at_, word.size()) != word) return fail("a value is expected");
  at_ += word.size();
  return true;
}

bool JsonCursor::boolean(bool& out) {
  if (!begin_value()) return false;
  out = text_[at_] == 't';
  return literal(out ? "true" : "false");
}

bool JsonCursor::null() {
  return begin_value() && literal("null");
}

bool JsonCursor::skip() {
  const size_t outside = depth_;
  std::string_view number_text;
  do {
    // Behind each value: on to the next one, out of containers that end.
    if (depth_ > outside) {
      if (!ok()) return false;
      if (close(is_object_[depth_ - 1] ? '}' : ']')) continue;
      if (is_object_[depth_ - 1]) {
        if (!take_string(nullptr)) return false;
        space();
        if (at_ >= text_.size() || text_[at_] != ':') return fail("a colon is expected");
        ++at_;
      }
    }
    switch (peek()) {
      case JsonKind::kObject:
        if (!open('{', true)) return false;
        break;
      case JsonKind::kArray:
        if (!open('[', false)) return false;
        break;
      case JsonKind::kString:
        if (!take_string(nullptr)) return false;
        break;
      case JsonKind::kTrue:
        if (!literal("true")) return false;
        break;
      case JsonKind::kFalse:
        if (!literal("false")) return false;
        break;
      case JsonKind::kNull:
        if (!literal("null")) return false;
        break;
      case JsonKind::kNumber:
        if (!take_number(number_text)) return false;
        break;
      case JsonKind::kEnd:
        return fail("the text ends where a value is expected");
    }
  } while (ok() && depth_ > outside);
  return ok();
}

bool JsonCursor::raw(std::string_view& text) {
  if (!begin_value()) return false;
  const size_t begin = at_;
  if (!skip()) return false;
  text = text_.substr(begin, at_ - begin);
  return true;
}

bool JsonCursor::at_end() {
  return peek() == JsonKind::kEnd && ok();
}
void JsonCursor::restart() {
  depth_ = 0;
}

bool is_json(std::string_view text, size_t max_depth) {
  JsonCursor cursor(text, 0, max_depth);
  return cursor.skip() && cursor.at_end();
}

std::optional<int64_t> json_integer(std::string_view number) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
  return value;
}

std::optional<double> json_double(std::string_view number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc()) return value;
  if (std::isinf(std::strtod(std::string(number).c_str(), nullptr))) return std::nullopt;
  return 0;
}

std::optional<float> json_float(std::string_view number) {
  float value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc()) return value;
  const auto wide = json_double(number);
  if (!wide || std::fabs(*wide) > 1) return std::nullopt;
  return 0.0f;
}

}  // namespace collect
