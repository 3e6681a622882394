#include "daemon/control/relay/refusal_answer.h"

#include <algorithm>
#include <string_view>

namespace collect::control {
namespace {

constexpr uint32_t kMaxAnswers = 16;
constexpr uint32_t kMaxFrames = 256;
constexpr char kPermissionDenied[] = "7";  // grpc::StatusCode::PERMISSION_DENIED on the wire

std::string frame_bytes(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
  const auto length = static_cast<uint32_t>(payload.size());
  std::string bytes;
  for (const uint32_t byte : {length >> 16, length >> 8, length, uint32_t{type}, uint32_t{flags},
                              stream >> 24, stream >> 16, stream >> 8, stream}) {
    bytes += static_cast<char>(byte & 0xff);
  }
  return bytes.append(payload);
}

// RFC 7541, 5.2: a length with a prefix of seven bits, no Huffman code.
std::string hpack_string(std::string_view text) {
  std::string bytes;
  size_t length = text.size();
  if (length < 127) {
    bytes += static_cast<char>(length);
  } else {
    bytes += '\x7f';
    for (length -= 127; length >= 128; length /= 128) {
      bytes += static_cast<char>(length % 128 | 128);
    }
    bytes += static_cast<char>(length);
  }
  return bytes.append(text);
}

// A header that no table remembers.
std::string hpack_literal(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + hpack_string(name) + hpack_string(value);
}

// gRPC's escapes of grpc-message.
std::string percent_encoded(std::string_view text) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f && c != '%') {
      out += c;
    } else {
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

}  // namespace

RefusalAnswer::RefusalAnswer(const std::string& reason)
    : block_("\x88"  // ":status: 200" of HPACK's static table
             + hpack_literal("content-type", "application/grpc") +
             hpack_literal("grpc-status", kPermissionDenied) +
             hpack_literal("grpc-message", percent_encoded(reason))) {}

std::string RefusalAnswer::greeting() {
  return frame_bytes(Http2Frame::kSettings, 0, 0, "");
}

bool RefusalAnswer::answer(Bytes bytes, std::string& out) {
  const bool is_http2 =
      frames_.read(bytes, [this, &out](const Http2Frame& frame) { on_frame(frame, out); });
  return is_http2 && calls_ <= kMaxAnswers && frames_seen_ <= kMaxFrames;
}

void RefusalAnswer::on_frame(const Http2Frame& frame, std::string& out) {
  if (++frames_seen_ > kMaxFrames) return;
  if (frame.type == Http2Frame::kSettings && (frame.flags & Http2Frame::kAck) == 0) {
    out += frame_bytes(Http2Frame::kSettings, Http2Frame::kAck, 0, "");
  }
  // With the first frame of a call: its headers need not be read to be refused.
  if (frame.type == Http2Frame::kHeaders && ++calls_ <= kMaxAnswers) {
    out += frame_bytes(Http2Frame::kHeaders, Http2Frame::kEndHeaders | Http2Frame::kEndStream,
                       frame.stream, block_);
  }
}

}  // namespace collect::control
