#include "daemon/ctl/text_out.h"

#include <charconv>
#include <cstring>
#include <ostream>
#include <sstream>

namespace collect::ctl {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

// The length of the well-formed UTF-8 sequence at the front; 0 when there is none (RFC 3629: no
// overlong forms, no surrogates, nothing above U+10FFFF).
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const auto continues = [&](size_t i, uint8_t low = 0x80, uint8_t high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return continues(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const uint8_t low = first == 0xE0 ? 0xA0 : 0x80;
    const uint8_t high = first == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const uint8_t low = first == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = first == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

void TextOut::put(std::string_view text) {
  while (text.size() > kBufferBytes - used_) {
    const size_t part = kBufferBytes - used_;
    std::memcpy(buffer_.data() + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
    flush();
  }
  if (text.empty()) return;
  std::memcpy(buffer_.data() + used_, text.data(), text.size());
  used_ += text.size();
}

void TextOut::repeat(char c, size_t count) {
  constexpr std::string_view kSpaces = "                                ";
  while (c == ' ' && count > kSpaces.size()) {
    put(kSpaces);
    count -= kSpaces.size();
  }
  if (c == ' ') {
    put(kSpaces.substr(0, count));
  } else {
    for (; count != 0; --count) put(c);
  }
}

void TextOut::dec(uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  put(std::string_view(digits, static_cast<size_t>(end - digits)));
}

void TextOut::dec(uint64_t number, size_t width) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const auto length = static_cast<size_t>(end - digits);
  if (length < width) repeat(' ', width - length);
  put(std::string_view(digits, length));
}

void TextOut::hex(uint64_t number) {
  char digits[18] = {'0', 'x'};
  const auto end = std::to_chars(digits + 2, digits + sizeof digits, number, 16).ptr;
  put(std::string_view(digits, static_cast<size_t>(end - digits)));
}

void TextOut::hex_bytes(Bytes bytes) {
  for (const uint8_t byte : bytes) {
    const char pair[2] = {kHexDigits[byte >> 4], kHexDigits[byte & 15]};
    put(std::string_view(pair, 2));
  }
}

void TextOut::micros(int64_t ns, size_t width) {
  char digits[32];
  // Negative where a file's times step back behind its first.
  const uint64_t size =
      ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  char* at = digits;
  if (ns < 0) *at++ = '-';
  at = std::to_chars(at, digits + sizeof digits, size / 1000).ptr;
  const auto rest = static_cast<unsigned>(size % 1000);
  *at++ = '.';
  *at++ = static_cast<char>('0' + rest / 100);
  *at++ = static_cast<char>('0' + rest / 10 % 10);
  *at++ = static_cast<char>('0' + rest % 10);
  const auto length = static_cast<size_t>(at - digits);
  if (length < width) repeat(' ', width - length);
  put(std::string_view(digits, length));
}

void TextOut::json_string(std::string_view text) {
  put('"');
  while (!text.empty()) {
    // Runs of plain characters go as one piece.
    size_t plain = 0;
    while (plain < text.size() && text[plain] >= 0x20 && text[plain] < 0x7F && text[plain] != '"' &&
           text[plain] != '\\') {
      ++plain;
    }
    put(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const char c = text.front();
    if (c == '"' || c == '\\') {
      put('\\');
      put(c);
      text.remove_prefix(1);
    } else if (static_cast<uint8_t>(c) < 0x20 || c == 0x7F) {
      const auto code = static_cast<uint8_t>(c);
      const char escape[6] = {'\\', 'u', '0', '0', kHexDigits[code >> 4], kHexDigits[code & 15]};
      put(std::string_view(escape, 6));
      text.remove_prefix(1);
    } else {
      const size_t length = utf8_length(text);
      put(length != 0 ? text.substr(0, length) : std::string_view("\xEF\xBF\xBD"));
      text.remove_prefix(length != 0 ? length : 1);
    }
  }
  put('"');
}

void TextOut::printable(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<uint8_t>(text.front());
    const auto second = static_cast<uint8_t>(text.size() > 1 ? text[1] : 0);
    // C0, DEL, the C1 controls (U+0080..U+009F) and bytes that are not UTF-8.
    const bool control = length == 0 || first < 0x20 || first == 0x7F ||
                         (length == 2 && first == 0xC2 && second < 0xA0);
    put(control ? std::string_view("?") : text.substr(0, length));
    text.remove_prefix(length != 0 ? length : 1);
  }
}

void TextOut::flush() {
  if (ok_ && used_ != 0) {
    out_.write(buffer_.data(), static_cast<std::streamsize>(used_));
    out_.flush();
    ok_ = out_.good();
  }
  used_ = 0;
}

std::string json_text(std::string_view text) {
  std::ostringstream out;
  TextOut(out).json_string(text);
  return out.str();
}

}  // namespace collect::ctl
