// UTF-8 and numbers as text. Pure functions that append to the caller's string.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/core/text/base64.h"
#include "formats/core/text/printable.h"
#include "formats/core/text/utf8.h"
#include "formats/core/text/utf8_text.h"

namespace collect::wtf {

std::string latin1_to_utf8(std::string_view bytes);

void append_number(std::string& out, int64_t value);
// The shortest text that reads back as the same number; whole numbers below 1e15 without exponent.
// `value` is finite.
void append_number(std::string& out, double value);
void append_number(std::string& out, float value);

inline Error refused(std::string why) {
  return {Code::kInvalidArgument, std::move(why)};
}

inline Bytes bytes_of(std::string_view text) {
  return Bytes(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}
inline std::string_view text_of(Bytes bytes) {
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace collect::wtf
