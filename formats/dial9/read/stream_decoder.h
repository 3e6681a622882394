// Decodes bytes that are pushed in as they come and do not stay: a connection's, or a growing
// file's. It keeps the one unfinished frame and what the decoder must know, nothing else, and both
// have limits. With the default Visitor it is what an intake needs: which bytes are whole frames,
// where the sub-streams begin, and the first byte that is not dial9.
//
//   cases: part of a frame | a whole frame | several | whole ones and a part
//
// However the bytes are cut, the visitor sees the same frames. Work is in proportion to the bytes,
// also for a peer that sends them one by one: an unfinished frame is looked at again only when the
// bytes are there that it must have at least. One thread at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "formats/dial9/read/decoder.h"

namespace collect::dial9 {

// The recorder's batches have at most 1 MiB, so do their frames; this is generous.
inline constexpr uint64_t kDefaultMaxStreamFrameBytes = uint64_t{16} << 20;
inline constexpr uint64_t kDefaultMaxStreamStateBytes = uint64_t{64} << 20;

struct StreamOptions {
  // The bytes of a push are gone after it, so kBorrow means kCopy here; kNone is enough for those
  // who resolve nothing.
  PoolStorage pools = PoolStorage::kCopy;
  uint64_t max_frame_bytes = kDefaultMaxStreamFrameBytes;
  uint64_t max_state_bytes = kDefaultMaxStreamStateBytes;
};

class StreamDecoder {
 public:
  explicit StreamDecoder(StreamOptions options = {})
      : decoder_({options.pools == PoolStorage::kBorrow ? PoolStorage::kCopy : options.pools,
                  options.max_frame_bytes, options.max_state_bytes}) {}

  // Takes the next bytes. kEnd and kNeedMore: continue. kFailed: nothing more is taken, problem()
  // says why; whole_bytes() hold. kStopped: the visitor wants no more; the rest waits for the next
  // push, which may be empty.
  template <class V>
  DecodeState push(Bytes bytes, V& visitor);
  // The stream has ended: what is wrong with its end, if anything.
  std::optional<Problem> finish() { return decoder_.finish(rest()); }

  // Offset behind the last whole frame: up to here the stream is good, and complete in itself.
  uint64_t whole_bytes() const { return decoder_.offset(); }
  // Bytes of the frame that has begun there. Valid until the next push.
  Bytes rest() const { return kept_; }
  const std::optional<Problem>& problem() const { return decoder_.problem(); }
  const Decoder& decoder() const { return decoder_; }

 private:
  // From a push, this much is put behind an unfinished frame at once; what is not needed there is
  // then read where it came.
  static constexpr size_t kBridgeBytes = 4096;
  // An idle stream keeps no larger buffer.
  static constexpr size_t kIdleBytes = size_t{16} << 10;

  void keep(Bytes bytes) {
    if (bytes.empty() && kept_.capacity() > kIdleBytes) kept_ = {};
    kept_.assign(bytes.begin(), bytes.end());
  }

  Decoder decoder_;
  std::vector<uint8_t> kept_;  // the unfinished frame; after kStopped, all that was not read
  uint64_t need_ = 0;          // bytes that the unfinished frame has at least
};

template <class V>
DecodeState StreamDecoder::push(Bytes bytes, V& visitor) {
  if (decoder_.problem()) return DecodeState::kFailed;
  while (!kept_.empty()) {
    const size_t old = kept_.size();
    const uint64_t missing = need_ > old ? need_ - old : 0;
    const size_t bridge = static_cast<size_t>(
        std::min<uint64_t>(std::max<uint64_t>(missing, kBridgeBytes), bytes.size()));
    kept_.insert(kept_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(bridge));
    if (kept_.size() < need_) return DecodeState::kNeedMore;
    const Decoded decoded = decoder_.decode(kept_, visitor);
    need_ = decoded.need;
    if (decoded.state == DecodeState::kFailed) {
      keep({});
      return decoded.state;
    }
    if (decoded.bytes >= old) {  // what was kept is done: the rest is read where it came
      bytes = bytes.subspan(decoded.bytes - old);
      keep({});
      if (decoded.state != DecodeState::kStopped) break;
      keep(bytes);
      return decoded.state;
    }
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(decoded.bytes));
    bytes = bytes.subspan(bridge);
    if (decoded.state == DecodeState::kStopped) {
      kept_.insert(kept_.end(), bytes.begin(), bytes.end());
      return decoded.state;
    }
    if (bytes.empty()) return decoded.state;
  }
  const Decoded decoded = decoder_.decode(bytes, visitor);
  need_ = decoded.need;
  keep(decoded.state == DecodeState::kFailed ? Bytes() : bytes.subspan(decoded.bytes));
  return decoded.state;
}

}  // namespace collect::dial9
