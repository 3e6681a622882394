#include "formats/core/text/printable.h"

#include "formats/core/text/utf8.h"

namespace collect {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr char kHex[] = "0123456789abcdef";

struct Style {
  bool double_backslash = false;
  bool escape_quote = false;
  bool keep_lines = false;  // \n and \t
};

void append_hex_byte(std::string& out, uint8_t byte) {
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

void append_hex(std::string& out, uint32_t number, int digits) {
  for (int shift = (digits - 1) * 4; shift >= 0; shift -= 4) out += kHex[number >> shift & 15];
}

void append_ascii(std::string& out, uint8_t c, const Style& style) {
  switch (c) {
    case '\n':
    case '\t':
      if (style.keep_lines) {
        out += static_cast<char>(c);
      } else {
        out += c == '\n' ? "\\n" : "\\t";
      }
      break;
    case '\r':
      out += "\\r";
      break;
    case '\\':
      out += style.double_backslash ? "\\\\" : "\\";
      break;
    case '"':
      out += style.escape_quote ? "\\\"" : "\"";
      break;
    default:
      if (is_plain_ascii(c)) {
        out += static_cast<char>(c);
      } else {
        append_hex_byte(out, c);
      }
  }
}

// The character, or the part of one, that `step` found at the start of `text`.
void append_step(std::string& out, std::string_view text, const Utf8Step& step,
                 const Style& style) {
  if (!step.is_valid) {
    for (const char c : text.substr(0, step.bytes)) append_hex_byte(out, static_cast<uint8_t>(c));
  } else if (step.bytes == 1) {
    append_ascii(out, static_cast<uint8_t>(text[0]), style);
  } else if (is_printable(step.code_point)) {
    out += text.substr(0, step.bytes);
  } else {
    int digits = 2;
    while (digits < 6 && step.code_point >> (digits * 4) != 0) ++digits;
    out += "\\u{";
    append_hex(out, step.code_point, digits);
    out += '}';
  }
}

bool is_plain_text(uint8_t c) {
  return is_plain_ascii(c) || c == '\n' || c == '\t';
}

// Nearly all output is plain: a chunk is looked at without a branch at each character, so that the
// compiler takes 16 or more at once.
constexpr size_t kTextChunk = 64;

bool is_plain_chunk(const char* text) {
  uint8_t others = 0;
  for (size_t i = 0; i < kTextChunk; ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    const bool is_plain = static_cast<uint8_t>(c - 0x20) < 0x7F - 0x20;
    others |= static_cast<uint8_t>(!(is_plain | (c == '\n') | (c == '\t')));
  }
  return others == 0;
}

// What no one escapes.
size_t unescaped_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size() && is_plain_ascii(static_cast<uint8_t>(text[at])) && text[at] != '"' &&
         text[at] != '\\') {
    ++at;
  }
  return at;
}

void append_bounded(std::string& out, std::string_view text, size_t max_bytes, const Style& style) {
  if (text.size() <= max_bytes && unescaped_prefix(text) == text.size()) {
    out += text;
    return;
  }
  const size_t start = out.size();
  size_t cut = start;  // where "…" fits, at the end of a character or an escape
  while (!text.empty()) {
    const Utf8Step step = utf8_step(text);
    append_step(out, text, step, style);
    text.remove_prefix(step.bytes);
    const size_t used = out.size() - start;
    if (used + kEllipsis.size() <= max_bytes) cut = out.size();
    if (used > max_bytes) {
      out.resize(cut);
      if (kEllipsis.size() <= max_bytes) out += kEllipsis;
      return;
    }
  }
}

void append_json_escape(std::string& out, uint32_t code_point) {
  const auto unit = [&out](uint32_t number) {
    out += "\\u";
    append_hex(out, number, 4);
  };
  if (code_point < 0x10000) return unit(code_point);
  unit(0xD800 + ((code_point - 0x10000) >> 10));
  unit(0xDC00 + ((code_point - 0x10000) & 0x3FF));
}

void append_json_ascii(std::string& out, char c) {
  constexpr std::string_view kShort = "\"\"\\\\\bb\ff\nn\rr\tt";
  for (size_t i = 0; i < kShort.size(); i += 2) {
    if (kShort[i] != c) continue;
    out += '\\';
    out += kShort[i + 1];
    return;
  }
  append_json_escape(out, static_cast<uint8_t>(c));
}

template <class IsShown>
void append_json(std::string& out, std::string_view text, IsShown&& is_shown) {
  out += '"';
  while (!text.empty()) {
    const size_t plain = unescaped_prefix(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Step step = utf8_step(text);
    if (!step.is_valid) {
      out += kReplacement;
    } else if (step.bytes == 1 && (text[0] == '"' || text[0] == '\\' || !is_shown(text[0]))) {
      append_json_ascii(out, text[0]);
    } else if (is_shown(step.code_point)) {
      out += text.substr(0, step.bytes);
    } else {
      append_json_escape(out, step.code_point);
    }
    text.remove_prefix(step.bytes);
  }
  out += '"';
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string out;
  append_bounded(out, text, max_bytes, {.double_backslash = true});
  return out;
}

bool is_plain_name(std::string_view text) {
  for (const char c : text) {
    if (!is_plain_ascii(static_cast<uint8_t>(c)) || c == '\\') return false;
  }
  return true;
}

std::string in_quotes(std::string_view text, size_t max_bytes) {
  std::string out = "\"";
  append_bounded(out, text, max_bytes, {.double_backslash = true, .escape_quote = true});
  out += '"';
  return out;
}

std::string printable_sentence(std::string_view text, size_t max_bytes) {
  std::string out;
  append_bounded(out, text, max_bytes, {});
  return out;
}

size_t plain_text_prefix(std::string_view text) {
  size_t at = 0;
  while (text.size() - at >= kTextChunk && is_plain_chunk(text.data() + at)) at += kTextChunk;
  while (at < text.size() && is_plain_text(static_cast<uint8_t>(text[at]))) ++at;
  return at;
}

size_t append_printable_text(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const size_t plain = plain_text_prefix(text);
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const Utf8Step step = utf8_step(text);
    const bool is_cut =
        !step.is_valid && step.bytes == text.size() &&
        utf8_detail::lead_of(static_cast<uint8_t>(text[0])).following != utf8_detail::kNoLead;
    if (is_cut) return text.size();
    append_step(out, text, step, {.keep_lines = true});
    text.remove_prefix(step.bytes);
  }
  return 0;
}

void append_json_string(std::string& out, std::string_view text) {
  append_json(out, text, [](uint32_t code_point) { return is_printable(code_point); });
}

void append_minimal_json_string(std::string& out, std::string_view text) {
  append_json(out, text, [](uint32_t code_point) { return code_point >= 0x20; });
}

std::string printable_json(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  while (!json.empty()) {
    size_t plain = 0;
    while (plain < json.size() && static_cast<uint8_t>(json[plain]) < 0x7F) ++plain;
    out += json.substr(0, plain);
    json.remove_prefix(plain);
    if (json.empty()) break;
    const Utf8Step step = utf8_step(json);
    if (!step.is_valid) {
      out += kReplacement;
    } else if (is_printable(step.code_point)) {
      out += json.substr(0, step.bytes);
    } else {
      append_json_escape(out, step.code_point);
    }
    json.remove_prefix(step.bytes);
  }
  return out;
}

}  // namespace collect
