// What both halves of codec 1 know of a page's records; WIRE.md "Page codecs".
#pragma once

#include <cstdint>

#include "formats/core/page.h"

namespace collect::wire {

// A record's fixed part: index records are nothing else, behind that of detail records is a
// payload.
constexpr uint32_t kIndexFixed = 32;
constexpr uint32_t kDetailFixed = 24;
constexpr uint32_t kMostFixed = kIndexFixed;
constexpr uint32_t kMaskBytes = 4;
// So many records are turned at a time: they stay in the nearest cache.
constexpr uint32_t kBlockRecords = 256;

constexpr uint64_t kLowHalf = 0xFFFFFFFF;

constexpr uint32_t fixed_of(Lane lane) {
  return lane == Lane::kIndex ? kIndexFixed : kDetailFixed;
}

// What of a word becomes the difference to the record before: times, and the numbers of index and
// detail records. Both versions of the records have them at these places.
enum class Grows : uint8_t { kNothing, kWord, kLow, kHigh };

template <Grows kGrows>
uint64_t difference(uint64_t now, uint64_t before) {
  if constexpr (kGrows == Grows::kWord) return now - before;
  if constexpr (kGrows == Grows::kLow) return (now & ~kLowHalf) | ((now - before) & kLowHalf);
  if constexpr (kGrows == Grows::kHigh) return now - (before & ~kLowHalf);
  return now;
}

template <Grows kGrows>
uint64_t sum(uint64_t difference, uint64_t before) {
  if constexpr (kGrows == Grows::kWord) return difference + before;
  if constexpr (kGrows == Grows::kLow) {
    return (difference & ~kLowHalf) | ((difference + before) & kLowHalf);
  }
  if constexpr (kGrows == Grows::kHigh) return difference + (before & ~kLowHalf);
  return difference;
}

// Calls `visit.operator()<grows>(word)` for each word of the lane's fixed part.
template <typename Visit>
void for_each_word(Lane lane, const Visit& visit) {
  if (lane == Lane::kIndex) {
    visit.template operator()<Grows::kWord>(0u);
    visit.template operator()<Grows::kNothing>(1u);
    visit.template operator()<Grows::kLow>(2u);
    visit.template operator()<Grows::kHigh>(3u);
  } else {
    visit.template operator()<Grows::kNothing>(0u);
    visit.template operator()<Grows::kLow>(1u);
    visit.template operator()<Grows::kWord>(2u);
  }
}

// The bytes of a word that are not 0 in `varying`, as shifts; how many.
inline uint32_t shifts_of(uint64_t varying, uint32_t (&shifts)[8]) {
  uint32_t count = 0;
  for (uint32_t shift = 0; shift < 64; shift += 8) {
    if ((varying >> shift & 0xFF) != 0) shifts[count++] = shift;
  }
  return count;
}

}  // namespace collect::wire
