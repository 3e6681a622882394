// What is counted of one zone's events, as the published viewer would list them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace collect::wtf {

// Distinct names of scope#enter and timeStamp events beyond these are not distinguished.
inline constexpr size_t kMaxCountedNames = size_t{1} << 20;
// Frames and time ranges of one file beyond these are not counted.
inline constexpr size_t kMaxCountedSpans = size_t{1} << 22;
inline constexpr size_t kMostFrequent = 5;

struct ZoneReport {
  std::optional<std::string> name, type, location;  // absent: null in the file
  uint64_t events = 0;
  uint64_t scopes = 0;  // entered and left
  uint64_t max_scope_depth = 0;
  std::optional<uint32_t> first_us, last_us;
  uint64_t distinct_names = 0;
  // The most frequent names, by count and then by name; at most kMostFrequent.
  std::vector<std::pair<std::string, uint64_t>> most_frequent;
  uint64_t frames = 0;  // with a start and an end
  uint64_t marks = 0;
  uint64_t time_ranges = 0;
  uint64_t backward_steps = 0;
  uint64_t unmatched_leaves = 0;
  uint64_t open_scopes = 0;  // at the end
};

}  // namespace collect::wtf
