// Bytes as text, for ids and keys.
#pragma once

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

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

// The bytes of that text; none where a digit is none.
inline std::vector<uint8_t> bytes_of_hex(std::string_view hex) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    uint8_t byte = 0;
    const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (error != std::errc{} || end != hex.data() + i + 2) return {};
    bytes.push_back(byte);
  }
  return bytes;
}

}  // namespace collect
