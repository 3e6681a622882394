// What stands before everything in "sync:": a word of four letters and a number, little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace collect::ctl {

inline constexpr size_t kSyncPieceBytes = 64u << 10;      // of a DATA, at most, says the protocol
inline constexpr size_t kMaxSyncMessageBytes = 4u << 10;  // of a FAIL, that is kept

struct SyncHeader {
  std::string_view word;  // in the bytes that it was read from
  uint32_t number;
};

inline SyncHeader sync_header(const std::array<char, 8>& bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i) {
    number |= static_cast<uint32_t>(static_cast<uint8_t>(bytes[4 + i])) << (8 * i);
  }
  return {std::string_view(bytes.data(), 4), number};
}

inline std::string sync_header(std::string_view word, size_t number) {
  std::string bytes(word);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>((number >> shift) & 0xFF);
  }
  return bytes;
}

}  // namespace collect::ctl
