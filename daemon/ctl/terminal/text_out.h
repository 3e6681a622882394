// Text by the block: numbers by std::to_chars, no formatting machinery per field. Into memory, or
// through it into a stream.
#pragma once

#include <cstdint>
#include <cstring>
#include <iosfwd>
#include <memory>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"
#include "formats/core/text/printable.h"

namespace collect::ctl {

// Text in memory that grows as it has to.
class TextBuffer {
 public:
  static constexpr size_t kFirstBytes = size_t{1} << 16;

  TextBuffer() = default;
  virtual ~TextBuffer() = default;
  TextBuffer(const TextBuffer&) = delete;
  TextBuffer& operator=(const TextBuffer&) = delete;

  void put(std::string_view text) {
    if (text.size() > capacity_ - used_) return put_in_parts(text);
    if (text.empty()) return;
    std::memcpy(bytes_.get() + used_, text.data(), text.size());
    used_ += text.size();
  }
  void put(char c) {
    *room(1) = c;
    ++used_;
  }
  void repeat(char c, size_t count);
  void dec(uint64_t number);
  void dec(uint64_t number, size_t width);             // right-aligned with spaces
  void count(uint64_t number, std::string_view noun);  // "1 thread", "2 threads"
  void hex(uint64_t number);                           // "0x2a"
  void hex_bytes(Bytes bytes);                         // "00ff"
  void seconds(uint64_t ns);                           // "12.000000345"
  // Nanoseconds as microseconds with three decimals, right-aligned.
  void micros(int64_t ns, size_t width);
  void json_string(std::string_view text);  // with quotes
  // A name, and a sentence with names in it, that others gave: formats/core/text/printable.h.
  void printable(std::string_view text, size_t max_bytes = kMaxPrintableBytes);
  void quoted(std::string_view text, size_t max_bytes = kMaxPrintableBytes);
  void sentence(std::string_view text);

  // For who writes many fields at once: `bytes` of room behind the text, and where the text ends
  // now.
  char* room(size_t bytes) {
    if (bytes > capacity_ - used_) make_room(bytes);
    return bytes_.get() + used_;
  }
  void end_at(const char* end) { used_ = static_cast<size_t>(end - bytes_.get()); }

  size_t size() const { return used_; }  // of what is in memory
  std::string_view text() const { return {bytes_.get(), used_}; }
  void clear() { used_ = 0; }

 protected:
  virtual void make_room(size_t bytes);
  void grow(size_t bytes);  // to room for that many
  size_t room_left() const { return capacity_ - used_; }

 private:
  void put_in_parts(std::string_view text);

  std::unique_ptr<char[]> bytes_;
  size_t capacity_ = 0;
  size_t used_ = 0;
  std::string scratch_;
};

// Text into a stream. When the reader goes away (a closed pipe), ok() turns false and the rest is
// dropped quietly.
class TextOut final : public TextBuffer {
 public:
  explicit TextOut(std::ostream& out) : out_(out) {}
  ~TextOut() override { flush(); }

  void control(std::string_view sequence);  // our own colours
  void put_block(std::string_view text);    // without another copy

  void flush();
  bool ok() const { return ok_; }

 private:
  void make_room(size_t bytes) override;
  void write(std::string_view text);

  std::ostream& out_;
  bool ok_ = true;
};

// A JSON string as TextOut writes it, for texts that are put together first.
std::string json_text(std::string_view text);

}  // namespace collect::ctl
