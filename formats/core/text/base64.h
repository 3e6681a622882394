// Base64 (RFC 4648, section 4), with padding.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/core/bytes.h"

namespace collect {

void append_base64(std::string& out, Bytes bytes);
inline std::string base64(Bytes bytes) {
  std::string text;
  append_base64(text, bytes);
  return text;
}
// Absent unless `text` is canonical base64 with its padding.
std::optional<std::vector<uint8_t>> decode_base64(std::string_view text);

}  // namespace collect
