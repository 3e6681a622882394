#include "daemon/control/relay/http2_meter.h"

#include <fmt/core.h>

#include <algorithm>

namespace collect::control {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

Http2Frame frame_of(const uint8_t* header) {
  Http2Frame frame;
  frame.length = uint32_t{header[0]} << 16 | uint32_t{header[1]} << 8 | header[2];
  frame.type = header[3];
  frame.flags = header[4];
  frame.stream = (uint32_t{header[5]} << 24 | uint32_t{header[6]} << 16 | uint32_t{header[7]} << 8 |
                  header[8]) &
                 0x7fffffff;
  return frame;
}

}  // namespace

bool Http2Frames::read(Bytes bytes, const std::function<void(const Http2Frame&)>& on_frame) {
  static_assert(sizeof kPreface - 1 == kPrefaceBytes);
  while (!bytes.empty()) {
    if (preface_left_ != 0) {
      if (bytes[0] != static_cast<uint8_t>(kPreface[kPrefaceBytes - preface_left_])) return false;
      --preface_left_;
      bytes = bytes.subspan(1);
      continue;
    }
    if (payload_left_ != 0) {
      const size_t skipped = static_cast<size_t>(std::min<uint64_t>(payload_left_, bytes.size()));
      payload_left_ -= skipped;
      bytes = bytes.subspan(skipped);
      continue;
    }
    header_[header_bytes_++] = bytes[0];
    bytes = bytes.subspan(1);
    if (header_bytes_ < kFrameHeaderBytes) continue;
    header_bytes_ = 0;
    const Http2Frame frame = frame_of(header_);
    payload_left_ = frame.length;
    on_frame(frame);
  }
  return true;
}

std::string Http2Meter::from_client(Bytes bytes, uint32_t& costs) {
  const bool is_http2 = client_.read(
      bytes, [this, &costs](const Http2Frame& frame) { on_client_frame(frame, costs); });
  if (!is_http2) return "what it sends is not HTTP/2";
  if (open_.size() > kMaxOpenStreams) {
    return fmt::format("more than {} calls at once", kMaxOpenStreams);
  }
  if (header_block_bytes_ > kMaxHeaderBlockBytes) {
    return fmt::format("the headers of one call take more than {} bytes", kMaxHeaderBlockBytes);
  }
  return {};
}

void Http2Meter::on_client_frame(const Http2Frame& frame, uint32_t& costs) {
  switch (frame.type) {
    case Http2Frame::kHeaders:
      ++costs;
      header_block_bytes_ = frame.length;
      // Numbers only grow: another HEADERS with an older one are trailers.
      if (frame.stream <= last_stream_) return;
      last_stream_ = frame.stream;
      open_.insert(frame.stream);
      return;
    case Http2Frame::kContinuation:
      // Empty ones cost work too.
      header_block_bytes_ += std::max<uint32_t>(frame.length, kFrameHeaderBytes);
      return;
    case Http2Frame::kRstStream:
      open_.erase(frame.stream);
      return;
    case Http2Frame::kSettings:
    case Http2Frame::kPing:
      if ((frame.flags & Http2Frame::kAck) == 0) ++costs;
      return;
    default:
      return;
  }
}

void Http2Meter::from_server(Bytes bytes) {
  (void)server_.read(bytes, [this](const Http2Frame& frame) {
    const bool is_last = (frame.type == Http2Frame::kHeaders || frame.type == Http2Frame::kData) &&
                         (frame.flags & Http2Frame::kEndStream) != 0;
    if (is_last || frame.type == Http2Frame::kRstStream) open_.erase(frame.stream);
  });
}

}  // namespace collect::control
