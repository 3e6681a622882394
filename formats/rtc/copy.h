// Copies the objects of a container into a new one: every complete object of every stream, with the
// time that a reader gives it, even between parts that are cut off or damaged. FORMAT.md "Copying".
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/finding.h"

namespace collect::rtc {

inline constexpr size_t kMaxCopySentences = 1000;

struct Copied {
  uint64_t objects = 0;              // values of clocks included
  uint64_t streams = 0;              // opened in the copy
  uint64_t dropped = 0;              // objects of the input whose end is missing
  uint64_t possibly_incomplete = 0;  // copied, though they may be only the end of what was written
  uint64_t refused = 0;              // objects that the copy has no stream for
  uint64_t head_bytes = 0;           // in front of the first Marker
  uint64_t tail_bytes = 0;           // of an unfinished frame
  // Streams that are described otherwise in the copy, or not at all; at most kMaxCopySentences.
  std::vector<std::string> changes;
  uint64_t changes_left_out = 0;
  Findings findings;  // of the input
};

// Several files become one: streams of equal name and description continue each other. Reads every
// file twice: first which objects end, then the objects. `done`, which may be empty, is informed
// how many of the bytes of all files are done. Memory: as a Reader, and 8 bytes for each object
// that was dropped. Errors: no container (those of Reader::open), or the sink's.
Result<Copied> copy_objects(std::span<const Bytes> files, ByteSink& out,
                            const std::function<void(uint64_t)>& done = {});

// What the copy lacks of what was written once, as far as it can be counted: "objects whose end is
// missing" and so on, in sentences' order. Findings and changes are not in it.
inline std::vector<std::pair<uint64_t, std::string_view>> missing_counts(const Copied& copied) {
  std::vector<std::pair<uint64_t, std::string_view>> counts = {
      {copied.head_bytes, "bytes in front of the first Marker"},
      {copied.tail_bytes, "bytes of an unfinished frame at the end"},
      {copied.dropped, "objects whose end is missing"},
      {copied.possibly_incomplete, "objects that may be only the end of what was written"},
      {copied.refused, "objects that no stream of the copy can hold"},
      {copied.changes_left_out, "more streams that are described otherwise"}};
  std::erase_if(counts, [](const auto& one) { return one.first == 0; });
  return counts;
}

}  // namespace collect::rtc
