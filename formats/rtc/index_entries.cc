#include "formats/rtc/index_entries.h"

#include <fmt/core.h>

#include "formats/core/encoding/leb128.h"
#include "formats/rtc/layout.h"

namespace collect::rtc {
namespace {

void append(std::vector<uint8_t>& out, uint64_t value) {
  uint8_t bytes[kLeb128MaxBytes];
  out.insert(out.end(), bytes, bytes + write_uleb128(bytes, value));
}

}  // namespace

std::optional<uint64_t> IndexEntries::distance_of(uint64_t id) const {
  for (const IndexEntry& entry : entries) {
    if (entry.id == id) return entry.distance;
  }
  return std::nullopt;
}

Result<IndexEntries> parse_index(Bytes payload, bool with_count) {
  if (payload.size() > kMaxIndexBytes) {
    return Error{Code::kLimit, fmt::format("an index of {} bytes", payload.size())};
  }
  IndexEntries index;
  size_t at = 0;
  bool whole = true;
  const auto take = [&] {
    const auto read = read_uleb128(payload.subspan(at));
    whole = whole && static_cast<bool>(read);
    at = read ? at + read.size : payload.size();
    return read.value;
  };
  if (with_count) index.count = take();
  while (whole && at < payload.size()) {
    const uint64_t id = take();
    const uint64_t distance = take();
    if (!whole || (id & 1) == 0 || (distance & 1) != 0) {
      whole = false;
      break;
    }
    const IndexEntry entry{id >> 1, distance >> 1};
    if (!index.entries.empty() && entry.id < index.entries.back().id) index.ascending = false;
    index.entries.push_back(entry);
  }
  if (!whole) return Error{Code::kDamaged, "an index is malformed"};
  return index;
}

void append_index_count(std::vector<uint8_t>& out, uint64_t count) {
  append(out, count);
}

void append_index_entry(std::vector<uint8_t>& out, const IndexEntry& entry) {
  append(out, entry.id << 1 | 1);
  append(out, entry.distance << 1);
}

}  // namespace collect::rtc
