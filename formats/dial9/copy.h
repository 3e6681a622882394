// Copies the whole frames of a stream as they are: nothing in them is changed, so the copy has
// everything, also what this decoder does not know the meaning of.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "formats/core/byte_sink.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "formats/dial9/problem.h"

namespace collect::dial9 {

struct Copied {
  uint64_t bytes = 0;
  uint64_t events = 0;
  std::optional<Problem> problem;       // why it ends before the input does
  std::optional<uint64_t> next_header;  // where behind that something looks like another stream
};

// Up to the first frame that is damaged: frames have neither lengths nor checksums, and a stream
// that ends behind a whole frame is a whole stream. `done`, which may be empty, gets the bytes
// copied so far. Errors: there is not even a header (to_error), or the sink's.
Result<Copied> copy_frames(Bytes stream, ByteSink& out,
                           const std::function<void(uint64_t)>& done = {});

}  // namespace collect::dial9
