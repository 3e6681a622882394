// Looks at every byte of a container: the summary and the findings behind `collectctl inspect` and
// `verify`. One pass; memory grows with the number of Units and streams only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/rtc/finding.h"
#include "formats/rtc/read/reader.h"

namespace collect::rtc {

struct StreamSummary {
  StreamInfo info;  // as described first
  uint64_t objects = 0;
  uint64_t bytes = 0;
  uint64_t without_time = 0;
  uint64_t incomplete = 0;                             // dropped, because the end never came
  uint64_t possibly_incomplete = 0;                    // of `objects`
  std::optional<int64_t> first_time_ns, last_time_ns;  // least and greatest
};

struct Summary {
  uint64_t bytes = 0;
  uint64_t head_bytes = 0;  // skipped, before the first Marker
  uint64_t tail_bytes = 0;  // behind the last whole frame
  SpecialFrames special = SpecialFrames::kFixed;
  Endian endian = Endian::kLittle;
  Geometry geometry;  // of the first recording
  std::vector<UnitInfo> units;
  uint64_t frames = 0;                 // of all kinds
  uint64_t objects = 0;                // of the application's streams
  std::vector<StreamSummary> streams;  // with objects or losses, in order of appearance, by name
  std::optional<int64_t> first_time_ns, last_time_ns;
  std::vector<uint64_t> resyncs;  // where reading continued after bytes were skipped
  uint64_t skipped_bytes = 0;     // by resyncs, head and tail not included
  Findings findings;

  uint64_t units_with(CrcState state) const;
};

// Refused as Reader::open refuses.
Result<Summary> check_file(Bytes file, const ReaderOptions& options = {});

}  // namespace collect::rtc
