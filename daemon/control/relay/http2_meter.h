// What the client of one HTTP/2 connection costs its server, seen in the headers of its frames.
// gRPC 1.51 bounds neither how many streams a client begins and resets (2 GB from one connection),
// nor those it holds open while it does not acknowledge the limit, nor the bytes of one header
// block: each is bounded here, before gRPC sees it. CONTROL.md "Limits" has the figures.
//
// Bytes in, judgement out: no socket. One thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "formats/core/bytes.h"

namespace collect::control {

inline constexpr size_t kMaxStreamsPerConnection = 256;  // sent to clients
// The accepted number: a client may begin streams before it knows the limit.
inline constexpr size_t kMaxOpenStreams = 2 * kMaxStreamsPerConnection;
// HEADERS with its CONTINUATIONs; gRPC takes 16 KiB of metadata.
inline constexpr size_t kMaxHeaderBlockBytes = 32u << 10;

struct Http2Frame {
  static constexpr uint8_t kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kPing = 6,
                           kContinuation = 9;
  static constexpr uint8_t kEndStream = 0x1, kAck = 0x1, kEndHeaders = 0x4;

  uint32_t length = 0;  // of the payload
  uint8_t type = 0;
  uint8_t flags = 0;
  uint32_t stream = 0;
};

inline constexpr size_t kFrameHeaderBytes = 9;

// Finds the frames in one direction of a connection, however its bytes are cut.
class Http2Frames {
 public:
  explicit Http2Frames(bool is_from_client) : preface_left_(is_from_client ? kPrefaceBytes : 0) {}

  // Calls `on_frame` at each whole header. False: a client that does not begin as HTTP/2 does.
  bool read(Bytes bytes, const std::function<void(const Http2Frame&)>& on_frame);

 private:
  static constexpr size_t kPrefaceBytes = 24;

  size_t preface_left_;
  uint8_t header_[kFrameHeaderBytes];
  size_t header_bytes_ = 0;
  uint64_t payload_left_ = 0;
};

class Http2Meter {
 public:
  // Why the connection must end; empty: it may continue. Adds to `costs` the frames that make gRPC
  // work or answer: each stream begun, SETTINGS and PING.
  std::string from_client(Bytes bytes, uint32_t& costs);
  void from_server(Bytes bytes);

  size_t open_streams() const { return open_.size(); }

 private:
  void on_client_frame(const Http2Frame& frame, uint32_t& costs);

  Http2Frames client_{true};
  Http2Frames server_{false};
  std::set<uint32_t> open_;  // begun by the client, ended by no one
  uint32_t last_stream_ = 0;
  uint64_t header_block_bytes_ = 0;  // of the block that is coming, or came last
};

}  // namespace collect::control
