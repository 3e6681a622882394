// What is before everything in "sync:": a word of four letters and a number, little-endian.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/core/bytes.h"

namespace collect::ctl {

inline constexpr size_t kSyncPieceBytes = 64u << 10;      // of a DATA, at most, says the protocol
inline constexpr size_t kMaxSyncMessageBytes = 4u << 10;  // of a FAIL, that is kept

struct SyncHeader {
  std::string_view word;  // in the bytes that it was read from
  uint32_t number;
};

inline SyncHeader sync_header(const std::array<char, 8>& bytes) {
  const auto* const number = reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof(uint32_t);
  return {std::string_view(bytes.data(), sizeof(uint32_t)), load_le<uint32_t>(number)};
}

inline std::string sync_header(std::string_view word, uint32_t number) {
  std::string bytes(word);
  bytes.resize(word.size() + sizeof number);
  store_le(reinterpret_cast<uint8_t*>(bytes.data()) + word.size(), number);
  return bytes;
}

}  // namespace collect::ctl
