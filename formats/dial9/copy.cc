#include "formats/dial9/copy.h"

#include <algorithm>

#include "formats/dial9/read/decoder.h"

namespace collect::dial9 {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;  // handed to the sink, and reported, at once

}  // namespace

Result<Copied> copy_frames(Bytes stream, ByteSink& out, const std::function<void(uint64_t)>& done) {
  DecoderOptions options;
  options.pools = PoolStorage::kNone;
  Decoder decoder(options);
  Visitor ignored;
  const Decoded decoded = decoder.decode(stream, ignored);
  Copied copied;
  copied.bytes = decoded.bytes;
  copied.problem = decoder.finish(stream.subspan(decoded.bytes));
  copied.events = decoder.events();
  if (decoder.sub_streams() == 0) {
    return copied.problem ? to_error(*copied.problem)
                          : Error{Code::kTruncated, "there is no header"};
  }
  if (copied.problem) {
    const auto next = find_header(stream, decoded.bytes + 1);
    if (next) copied.next_header = *next;
  }
  for (size_t at = 0; at < decoded.bytes; at += kPieceBytes) {
    COLLECT_TRY(out.write(stream.subspan(at, std::min(kPieceBytes, decoded.bytes - at))));
    if (done) done(at);
  }
  return copied;
}

}  // namespace collect::dial9
