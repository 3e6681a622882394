// Sentences built in fixed memory: the drain thread neither allocates nor touches the host's stdio.
#pragma once

#include <cstddef>
#include <cstdint>

namespace collect::agent {

// Appends to a caller's buffer, cuts at its end, and keeps it terminated.
class Text {
 public:
  Text(char* out, size_t size) : out_(out), size_(size) { out_[0] = '\0'; }

  Text& add(const char* text) {
    while (*text != '\0' && used_ + 1 < size_) out_[used_++] = *text++;
    out_[used_] = '\0';
    return *this;
  }
  Text& number(uint64_t value) {
    char digits[21];
    size_t at = sizeof digits;
    digits[--at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return add(digits + at);
  }
  size_t size() const { return used_; }

 private:
  char* out_;
  size_t size_;
  size_t used_ = 0;
};

// Copies `source` (at most `source_bytes`, up to a zero byte) into `out` as valid UTF-8: what is
// none becomes '?', and a character that does not fit is left out. Terminated; returns the length.
size_t copy_utf8(char* out, size_t out_bytes, const char* source, size_t source_bytes);
// copy_utf8() of a text from a collector that a terminal may show: what is not printable
// (formats/core/TEXT.md) becomes '?' too.
size_t copy_printable(char* out, size_t out_bytes, const char* source, size_t source_bytes);

// What error numbers mean to someone who reads a status line. strerror may allocate.
const char* errno_text(int error_number);

}  // namespace collect::agent
