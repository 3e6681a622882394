// What a person's terminal gets to see. Everything that collectctl prints goes through a
// PrintableBuffer, the last of two nets: commands make single names printable (which also escapes
// their line ends), the buffer makes harmless what a command forgot.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <streambuf>
#include <string>
#include <string_view>

namespace collect::ctl {

// In front of another stream's buffer; one thread. UTF-8, \n and \t go through, controls, invisible
// characters and bytes that are no UTF-8 are escaped (formats/core/TEXT.md). A character that two
// writes divide is held back until it is whole.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf& sink) : sink_(sink) {}
  ~PrintableBuffer() override;
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;

  // Our own colours and cursor movements: past the net.
  bool write_control(std::string_view sequence);

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type c) override;
  int sync() override { return sink_.pubsync(); }

 private:
  bool pass(std::string_view text);

  std::streambuf& sink_;
  std::string held_;  // the start of a character, at most three bytes
  std::string escaped_;
};

// Puts `stream` behind a PrintableBuffer for its lifetime.
class PrintableStream {
 public:
  explicit PrintableStream(std::ostream& stream)
      : stream_(stream), plain_(stream.rdbuf()), buffer_(*plain_) {
    stream_.rdbuf(&buffer_);
  }
  ~PrintableStream() { stream_.rdbuf(plain_); }
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* const plain_;
  PrintableBuffer buffer_;
};

enum class ColorChoice : uint8_t { kAuto, kOn, kOff };
// kAuto: on a terminal, unless NO_COLOR has a text or TERM is "dumb". Null: the variable is not
// set.
bool wants_color(ColorChoice choice, bool is_terminal, const char* no_color, const char* term);

// Columns that a text takes: characters, each as one.
size_t columns_of(std::string_view text);
// The text if it fits, else its start with … behind it, or its end with … before it. 0: it always
// fits.
std::string cut_to(std::string_view text, size_t columns);
std::string cut_to_end(std::string_view text, size_t columns);
// What is left of a terminal's columns for the last cell of a line; 0: there is no end to it.
size_t columns_left(size_t columns, size_t used);

// Columns before a call of that depth.
inline constexpr size_t kMaxCallIndent = 200;  // deeper calls stay at the edge
inline size_t call_indent(uint32_t depth) {
  return std::min(2 * size_t{depth}, kMaxCallIndent);
}

// A constant of ours, never anything that came from outside.
void put_control(std::ostream& out, std::string_view sequence);

// The cursor back to the start of an empty line: the same line is written again.
void restart_line(std::ostream& out);

// "converting 42 %" on that line, ten times a second at most, and gone when all is done. It says
// nothing where it is not wanted.
std::function<void(uint64_t done, uint64_t all)> percent_line(std::ostream& out, bool wanted,
                                                              std::string_view doing);

}  // namespace collect::ctl
