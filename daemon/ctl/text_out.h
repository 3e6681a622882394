// Text into a stream by the block: numbers by std::to_chars, no formatting machinery per field.
// When the reader goes away (a closed pipe), ok() turns false and the rest is dropped quietly.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/printable.h"

namespace collect::ctl {

class TextOut {
 public:
  explicit TextOut(std::ostream& out) : out_(out) {}
  ~TextOut() { flush(); }
  TextOut(const TextOut&) = delete;
  TextOut& operator=(const TextOut&) = delete;

  void put(std::string_view text);
  void put(char c) {
    if (used_ == kBufferBytes) flush();
    buffer_[used_++] = c;
  }
  void repeat(char c, size_t count);
  void dec(uint64_t number);
  void dec(uint64_t number, size_t width);  // right-aligned with spaces
  void hex(uint64_t number);                // "0x2a"
  void hex_bytes(Bytes bytes);              // "00ff"
  void seconds(uint64_t ns);                // "12.000000345"
  // Nanoseconds as microseconds with three decimals, right-aligned.
  void micros(int64_t ns, size_t width);
  void json_string(std::string_view text);  // with quotes
  // A name, and a sentence with names in it, that others gave: formats/core/printable.h.
  void printable(std::string_view text, size_t max_bytes = kMaxPrintableBytes);
  void quoted(std::string_view text, size_t max_bytes = kMaxPrintableBytes);
  void sentence(std::string_view text);
  void control(std::string_view sequence);  // our own colours

  void flush();
  bool ok() const { return ok_; }

 private:
  static constexpr size_t kBufferBytes = size_t{1} << 16;

  std::ostream& out_;
  std::array<char, kBufferBytes> buffer_;
  size_t used_ = 0;
  std::string scratch_;
  bool ok_ = true;
};

// The same quoting for texts that are put together first.
std::string json_text(std::string_view text);

}  // namespace collect::ctl
