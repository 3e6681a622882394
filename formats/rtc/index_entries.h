// The payload of Index and index: a count (Index only), then pairs of id and distance.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::rtc {

struct IndexEntry {
  uint64_t id = 0;
  uint64_t distance = 0;  // from the start of the index frame back to the target; 0: never seen
  bool operator==(const IndexEntry&) const = default;
};

struct IndexEntries {
  std::optional<uint64_t> count;  // of an Index
  std::vector<IndexEntry> entries;
  bool ascending = true;

  // The distance of an id; absent when it is not listed.
  std::optional<uint64_t> distance_of(uint64_t id) const;
};

// kDamaged when it is malformed, kLimit beyond kMaxIndexBytes.
Result<IndexEntries> parse_index(Bytes payload, bool with_count);

void append_index_count(std::vector<uint8_t>& out, uint64_t count);
void append_index_entry(std::vector<uint8_t>& out, const IndexEntry& entry);

}  // namespace collect::rtc
