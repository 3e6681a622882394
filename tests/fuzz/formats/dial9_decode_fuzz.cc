// Any bytes as a dial9 stream: decoded whole, in pieces cut by the bytes themselves, checked and
// dumped. What must hold of every input is checked and ends the run.
#include <cstdint>

#include "formats/core/result.h"
#include "formats/dial9/check.h"
#include "tests/formats/dial9/recorded.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace collect;
  using dial9::Rule;
  if (size < 2) return 0;
  const size_t first_piece = data[0];
  const size_t piece = size_t{1} + data[1] % 64;
  const Bytes stream(data + 2, size - 2);
  const dial9::testing::Recorder whole = dial9::testing::record(stream);
  const dial9::Report report = dial9::check_stream(stream);
  COLLECT_CHECK(report.events == whole.events.size());
  COLLECT_CHECK(report.problem.has_value() == (whole.rule != Rule::kNone));
  COLLECT_CHECK(report.whole_bytes <= stream.size());
  COLLECT_CHECK(!report.problem || report.problem->frame_offset == report.whole_bytes);
  COLLECT_CHECK(!report.problem || report.problem->offset <= stream.size());
  // A frame whose count alone is beyond the limit is refused before its other faults are there.
  dial9::testing::Recorder pieces = dial9::testing::record_pieces(
      stream, {first_piece, piece},
      {dial9::PoolStorage::kCopy, dial9::kMaxFrameBytes, dial9::kDefaultMaxStateBytes});
  if (pieces.rule == Rule::kFrameSize) pieces.rule = whole.rule;
  COLLECT_CHECK(pieces == whole);
  // The good part is a good stream by itself, and shows the same.
  if (report.whole_bytes != 0) {
    const dial9::testing::Recorder good =
        dial9::testing::record(stream.first(static_cast<size_t>(report.whole_bytes)));
    COLLECT_CHECK(good.rule == Rule::kNone);
    COLLECT_CHECK(good.events == whole.events);
  }
  COLLECT_CHECK(!dial9::testing::json_lines(stream).empty());
  return 0;
}
