// Cuts a byte stream into frames. Owns no socket and no memory: the caller owns a buffer, reads
// into its end, and asks for the frames at its front.
//
// Cases, numbered as in the tests: (1) part of a header: kNeedMore, `need_bytes` says how many
// bytes the whole header takes; (2) header whole, part of the body: kNeedMore, with the frame's
// whole length, already checked against its limit; (3) exactly one frame: kFrame; (4) a frame and
// more: kFrame, `frame_bytes` says where the next begins. Anything else is kBad, for good: a stream
// that lost its framing is not searched for the next magic.
#pragma once

#include <cstdint>

#include "formats/core/bytes.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/layout.h"

namespace collect::wire {

enum class DecodeStatus : uint8_t { kFrame, kNeedMore, kBad };

enum class FrameError : uint8_t {
  kNone,
  kMagic,  // not this protocol
  kHeaderChecksum,
  kTooLong,       // body_bytes over the limit of its type
  kTooShort,      // a page frame without a whole page header
  kBodyChecksum,  // control body or page header
  kPageChecksum,  // the page's bytes
  kPageHeader,    // lane, codec, counts or lengths contradict each other
};

// A sentence for the log and for Refuse.reason.
const char* frame_error_text(FrameError error);

struct Frame {
  FrameType type{};
  Bytes body;                // control frame: its protobuf message
  PageHeader page{};         // page frame: its header …
  Bytes page_bytes;          // … and its bytes as sent
  uint32_t frame_bytes = 0;  // of the whole frame, header included
};

struct Decoded {
  DecodeStatus status{};
  FrameError error = FrameError::kNone;
  uint32_t need_bytes = 0;  // kNeedMore: bytes that must be in the buffer, from its front
};

// Looks at the front of `buffer`. On kFrame, `frame` points into the buffer. Checks every checksum
// (the page's bytes too) and every limit of layout.h; `crc` as in frame_encoder.h.
Decoded decode_frame(Bytes buffer, Crc32c crc, Frame& frame);

}  // namespace collect::wire
