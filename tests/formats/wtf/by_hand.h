// Bytes put together by hand from the document's layout, not by our writer.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/bytes.h"

namespace collect::wtf::testing {

class ByHand {
 public:
  ByHand& word(uint32_t value) {
    for (int i = 0; i < 4; ++i) bytes.push_back(static_cast<uint8_t>(value >> 8 * i));
    return *this;
  }
  ByHand& text(std::string_view value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  ByHand& raw(const std::vector<uint8_t>& value) {
    bytes.insert(bytes.end(), value.begin(), value.end());
    return *this;
  }
  // Definition with the table's ordinals of name and arguments.
  ByHand& define(uint32_t wire_id, uint32_t event_class, uint32_t flags, uint32_t name,
                 uint32_t args) {
    return word(1).word(0).word(wire_id).word(event_class).word(flags).word(name).word(args);
  }
  ByHand& file_header(uint32_t version = 10) { return word(0xDEADBEEF).word(5).word(version); }
  // A chunk whose parts follow one another, each padded to a multiple of 4.
  ByHand& chunk(uint32_t id, uint32_t type,
                const std::vector<std::pair<uint32_t, std::vector<uint8_t>>>& parts) {
    uint32_t length = 0;
    for (const auto& part : parts) length += padded(part.second);
    const auto count = static_cast<uint32_t>(parts.size());
    word(id).word(type).word(24 + 12 * count + length).word(0).word(9).word(count);
    uint32_t offset = 0;
    for (const auto& [part_type, part] : parts) {
      word(part_type).word(offset).word(static_cast<uint32_t>(part.size()));
      offset += padded(part);
    }
    for (const auto& part : parts) {
      raw(part.second);
      bytes.resize(bytes.size() + padded(part.second) - part.second.size());
    }
    return *this;
  }

  std::vector<uint8_t> bytes;

 private:
  static uint32_t padded(const std::vector<uint8_t>& part) {
    return (static_cast<uint32_t>(part.size()) + 3) / 4 * 4;
  }
};

inline std::vector<uint8_t> octets(std::string_view text) {
  return {text.begin(), text.end()};
}

// A whole file of one string table and one chunk of events.
inline std::vector<uint8_t> file_of(std::string_view table, const ByHand& events) {
  ByHand file;
  file.file_header();
  file.chunk(1, 1, {{0x10000, octets(R"({"type":"file_header","timebase":3.5})")}});
  file.chunk(2, 2, {{0x30000, octets(table)}, {0x20002, events.bytes}});
  return file.bytes;
}

}  // namespace collect::wtf::testing
