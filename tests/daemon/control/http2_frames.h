// Frames of HTTP/2 as a client sends them, written out by RFC 9113.
#pragma once

#include <cstdint>
#include <string>

#include "formats/core/bytes.h"

namespace collect::control {

inline const std::string kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

inline std::string frame(uint8_t type, uint8_t flags, uint32_t stream, size_t payload = 0) {
  std::string bytes;
  for (const uint32_t byte :
       {static_cast<uint32_t>(payload) >> 16, static_cast<uint32_t>(payload) >> 8,
        static_cast<uint32_t>(payload), uint32_t{type}, uint32_t{flags}, stream >> 24, stream >> 16,
        stream >> 8, stream}) {
    bytes += static_cast<char>(byte & 0xff);
  }
  return bytes.append(payload, 'x');
}

inline Bytes bytes_of(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace collect::control
