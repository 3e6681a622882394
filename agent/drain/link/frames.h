// Control frames in and out of fixed buffers: nanopb messages on one side, bytes on the other.
// Drain thread only. Nothing allocates.
#pragma once

#include <pb.h>

#include <cstddef>
#include <cstdint>

#include "agent/transport/socket.h"
#include "formats/core/bytes.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/layout.h"
#include "proto/wire/wire.nanopb.h"

namespace collect::agent {

inline constexpr size_t kFrameBufferBytes = wire::kMaxControlBody + sizeof(wire::FrameHeader);

// Parses `body` into the nanopb struct described by `fields`.
bool decode_message(Bytes body, const pb_msgdesc_t* fields, void* message);

// A whole control frame into `out`; its size, or 0 when it does not fit.
size_t encode_frame(MutableBytes out, wire::FrameType type, const pb_msgdesc_t* fields,
                    const void* message);

// Sends Refuse as far as the socket takes it, and closes.
void turn_away(Socket& socket, collect_wire_RefuseCode code, const char* reason, bool retry);

// The number in an enum field of a received message: it may be none of the enumerators, so it is
// not loaded as the enum.
template <class Enum>
uint32_t enum_number(const Enum& field) {
  static_assert(sizeof(Enum) == sizeof(uint32_t));
  return load_le<uint32_t>(reinterpret_cast<const uint8_t*>(&field));
}

// Frames on their way out.
class SendBuffer {
 public:
  // False when it does not fit behind what is still unsent.
  bool push(wire::FrameType type, const pb_msgdesc_t* fields, const void* message);
  IoStatus flush(Socket& socket);
  void clear() { begin_ = end_ = 0; }

  bool is_empty() const { return begin_ == end_; }
  size_t room() const { return sizeof bytes_ - end_; }
  // For gathering with other bytes: the unsent part, and how much of it went.
  iovec unsent() { return {bytes_ + begin_, end_ - begin_}; }
  void sent(size_t count);

 private:
  size_t begin_ = 0;
  size_t end_ = 0;
  uint8_t bytes_[kFrameBufferBytes];
};

// Frames coming in.
class ReceiveBuffer {
 public:
  // One read of what is there.
  IoStatus fill(Socket& socket);
  // The frame at the front; consume() it before asking for the next.
  wire::Decoded next(wire::Frame& frame);
  void consume(const wire::Frame& frame) { begin_ += frame.frame_bytes; }
  void clear() { begin_ = end_ = 0; }
  // Takes over what another buffer holds.
  void take(Bytes bytes);
  Bytes unread() const { return {bytes_ + begin_, end_ - begin_}; }

 private:
  size_t begin_ = 0;
  size_t end_ = 0;
  uint8_t bytes_[kFrameBufferBytes];
};

}  // namespace collect::agent
