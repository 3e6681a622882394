// What is in a buffer of frames that are about to be sent.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "agent/crc32c.h"
#include "agent/drain/link/frames.h"
#include "proto/wire/frame_decoder.h"

namespace collect::agent {

struct SentFrame {
  wire::FrameType type;
  std::string body;
};

// All of them; the buffer is empty then.
inline std::vector<SentFrame> take_frames(SendBuffer& out) {
  std::vector<SentFrame> frames;
  const iovec sent = out.unsent();
  Bytes left(static_cast<const uint8_t*>(sent.iov_base), sent.iov_len);
  while (!left.empty()) {
    wire::Frame frame;
    if (wire::decode_frame(left, crc32c, frame).status != wire::DecodeStatus::kFrame) {
      ADD_FAILURE() << "not whole frames";
      break;
    }
    frames.push_back({frame.type, std::string(frame.body.begin(), frame.body.end())});
    left = left.subspan(frame.frame_bytes);
  }
  out.clear();
  return frames;
}

}  // namespace collect::agent
