// Text on its way to a sink, in pieces of a fixed size. Errors of the sink are kept, and returned
// at the end. Used on one thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/byte_sink.h"

namespace collect {

class TextSink {
 public:
  static constexpr size_t kPieceBytes = 256 << 10;

  explicit TextSink(ByteSink& out) : out_(out) {}

  void put(std::string_view text) {
    text_ += text;
    if (text_.size() >= kPieceBytes) flush();
  }
  void put(char c) { text_ += c; }
  void dec(uint64_t number) {
    char digits[20];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    put(std::string_view(digits, static_cast<size_t>(end - digits)));
  }
  void dec(int64_t number) {
    if (number < 0) put('-');
    dec(number < 0 ? uint64_t{0} - static_cast<uint64_t>(number) : static_cast<uint64_t>(number));
  }
  // Thousandths as a number with three decimals: 12345 is 12.345.
  void thousandths(uint64_t number) {
    dec(number / 1000);
    const uint64_t rest = number % 1000;
    const char decimals[4] = {'.', static_cast<char>('0' + rest / 100),
                              static_cast<char>('0' + rest / 10 % 10),
                              static_cast<char>('0' + rest % 10)};
    put(std::string_view(decimals, sizeof decimals));
  }

  // Writes what is left.
  Status finish() {
    flush();
    return status_;
  }
  const Status& status() const { return status_; }

 private:
  void flush() {
    if (status_.ok() && !text_.empty()) {
      status_ = out_.write(Bytes(reinterpret_cast<const uint8_t*>(text_.data()), text_.size()));
    }
    text_.clear();
  }

  ByteSink& out_;
  std::string text_;
  Status status_;
};

}  // namespace collect
