#include "daemon/ctl/terminal/text_out.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <ostream>

#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr size_t kMaxDigits = 20;

}  // namespace

void TextBuffer::make_room(size_t bytes) {
  grow(bytes);
}

void TextBuffer::grow(size_t bytes) {
  const size_t capacity = std::max({used_ + bytes, 2 * capacity_, kFirstBytes});
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (used_ != 0) std::memcpy(larger.get(), bytes_.get(), used_);
  bytes_ = std::move(larger);
  capacity_ = capacity;
}

void TextBuffer::put_in_parts(std::string_view text) {
  while (text.size() > capacity_ - used_) {
    const size_t part = capacity_ - used_;
    if (part != 0) std::memcpy(bytes_.get() + used_, text.data(), part);
    used_ += part;
    text.remove_prefix(part);
    make_room(std::min(text.size(), kFirstBytes));
  }
  put(text);
}

void TextBuffer::repeat(char c, size_t count) {
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

void TextBuffer::dec(uint64_t number) {
  char* const at = room(kMaxDigits);
  end_at(std::to_chars(at, at + kMaxDigits, number).ptr);
}

void TextBuffer::dec(uint64_t number, size_t width) {
  char digits[kMaxDigits];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  const auto length = static_cast<size_t>(end - digits);
  if (length < width) repeat(' ', width - length);
  put(std::string_view(digits, length));
}

void TextBuffer::count(uint64_t number, std::string_view noun) {
  dec(number);
  put(' ');
  put(noun);
  if (number != 1) put('s');
}

void TextBuffer::hex(uint64_t number) {
  char* const at = room(2 + 16);
  at[0] = '0';
  at[1] = 'x';
  end_at(std::to_chars(at + 2, at + 2 + 16, number, 16).ptr);
}

void TextBuffer::hex_bytes(Bytes bytes) {
  constexpr size_t kPart = 4096;
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), kPart));
    char* at = room(2 * part.size());
    for (const uint8_t byte : part) {
      *at++ = kHexDigits[byte >> 4];
      *at++ = kHexDigits[byte & 15];
    }
    end_at(at);
    bytes = bytes.subspan(part.size());
  }
}

void TextBuffer::seconds(uint64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  dec(ns / kSecond);
  char fraction[10] = {'.'};
  uint64_t rest = ns % kSecond;
  for (size_t i = sizeof fraction - 1; i != 0; --i, rest /= 10) {
    fraction[i] = static_cast<char>('0' + rest % 10);
  }
  put(std::string_view(fraction, sizeof fraction));
}

void TextBuffer::micros(int64_t ns, size_t width) {
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
  const size_t padding = length < width ? width - length : 0;
  at = room(padding + length);
  std::memset(at, ' ', padding);
  std::memcpy(at + padding, digits, length);
  end_at(at + padding + length);
}

void TextBuffer::json_string(std::string_view text) {
  scratch_.clear();
  append_json_string(scratch_, text);
  put(scratch_);
}

void TextBuffer::printable(std::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes && is_plain_name(text)) return put(text);
  put(collect::printable(text, max_bytes));
}

void TextBuffer::quoted(std::string_view text, size_t max_bytes) {
  if (text.size() > max_bytes || !is_plain_name(text) || text.find('"') != std::string_view::npos) {
    return put(in_quotes(text, max_bytes));
  }
  put('"');
  put(text);
  put('"');
}

void TextBuffer::sentence(std::string_view text) {
  put(printable_sentence(text));
}

void TextOut::control(std::string_view sequence) {
  flush();
  put_control(out_, sequence);
}

void TextOut::put_block(std::string_view text) {
  flush();
  write(text);
}

void TextOut::make_room(size_t bytes) {
  flush();
  if (bytes > room_left()) grow(bytes);
}

void TextOut::flush() {
  write(text());
  clear();
}

void TextOut::write(std::string_view text) {
  if (!ok_ || text.empty()) return;
  out_.write(text.data(), static_cast<std::streamsize>(text.size()));
  out_.flush();
  ok_ = out_.good();
}

std::string json_text(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

}  // namespace collect::ctl
