#include "daemon/ctl/text_out.h"

#include <charconv>
#include <cstring>
#include <ostream>

#include "daemon/ctl/terminal.h"

namespace collect::ctl {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

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

void TextOut::seconds(uint64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  dec(ns / kSecond);
  char fraction[10] = {'.'};
  uint64_t rest = ns % kSecond;
  for (size_t i = sizeof fraction - 1; i != 0; --i, rest /= 10) {
    fraction[i] = static_cast<char>('0' + rest % 10);
  }
  put(std::string_view(fraction, sizeof fraction));
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
  scratch_.clear();
  append_json_string(scratch_, text);
  put(scratch_);
}

void TextOut::printable(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes && is_plain_name(text)) return put(text);
  put(collect::printable(text, max_bytes));
}

void TextOut::quoted(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes || !is_plain_name(text) || text.find('"') != std::string_view::npos) {
    return put(in_quotes(text, max_bytes));
  }
  put('"');
  put(text);
  put('"');
}

void TextOut::sentence(std::string_view text) {
  put(printable_sentence(text));
}

void TextOut::control(std::string_view sequence) {
  flush();
  put_control(out_, sequence);
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
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace collect::ctl
