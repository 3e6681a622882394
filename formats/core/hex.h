// Bytes as text, for ids and keys.
#pragma once

#include <string>

#include "formats/core/bytes.h"

namespace collect {

// Two digits a byte, in lower case: "00ff".
inline std::string hex_bytes(Bytes bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const uint8_t byte : bytes) {
    hex += kDigits[byte >> 4];
    hex += kDigits[byte & 15];
  }
  return hex;
}

}  // namespace collect
