#include "agent/drain/link/frames.h"

#include <pb_decode.h>
#include <pb_encode.h>

#include <cstring>

#include "agent/crc32c.h"
#include "agent/text.h"
#include "proto/wire/frame_encoder.h"

namespace collect::agent {

bool decode_message(Bytes body, const pb_msgdesc_t* fields, void* message) {
  pb_istream_t stream = pb_istream_from_buffer(body.data(), body.size());
  return pb_decode(&stream, fields, message);
}

size_t encode_frame(MutableBytes out, wire::FrameType type, const pb_msgdesc_t* fields,
                    const void* message) {
  if (out.size() < sizeof(wire::FrameHeader)) return 0;
  const MutableBytes body = out.subspan(sizeof(wire::FrameHeader));
  pb_ostream_t stream = pb_ostream_from_buffer(body.data(), body.size());
  if (!pb_encode(&stream, fields, message)) return 0;
  wire::encode_control_header(type, body.first(stream.bytes_written), crc32c, out.data());
  return sizeof(wire::FrameHeader) + stream.bytes_written;
}

void turn_away(Socket& socket, collect_wire_RefuseCode code, const char* reason, bool retry) {
  collect_wire_Refuse refuse = collect_wire_Refuse_init_zero;
  refuse.code = code;
  refuse.retry = retry;
  copy_utf8(refuse.reason, sizeof refuse.reason, reason, sizeof refuse.reason);
  uint8_t bytes[sizeof(wire::FrameHeader) + collect_wire_Refuse_size];
  const size_t size = encode_frame(MutableBytes(bytes, sizeof bytes), wire::FrameType::kRefuse,
                                   collect_wire_Refuse_fields, &refuse);
  const iovec part{bytes, size};
  // Best effort: a peer that does not read loses the reason, and the connection all the same.
  if (size != 0) (void)socket.send(&part, 1);
  socket.close();
}

bool SendBuffer::push(wire::FrameType type, const pb_msgdesc_t* fields, const void* message) {
  if (is_empty()) clear();
  const size_t size = encode_frame(MutableBytes(bytes_ + end_, room()), type, fields, message);
  end_ += size;
  return size != 0;
}

void SendBuffer::sent(size_t count) {
  begin_ += count;
  if (begin_ == end_) clear();
}

IoStatus SendBuffer::flush(Socket& socket) {
  while (!is_empty()) {
    const iovec part = unsent();
    const IoResult result = socket.send(&part, 1);
    if (result.status != IoStatus::kDone) return result.status;
    sent(result.bytes);
  }
  return IoStatus::kDone;
}

IoStatus ReceiveBuffer::fill(Socket& socket) {
  if (begin_ == end_) {
    clear();
  } else if (begin_ != 0 && end_ == sizeof bytes_) {
    std::memmove(bytes_, bytes_ + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  // A whole frame always fits, and is taken before more is read.
  if (end_ == sizeof bytes_) return IoStatus::kDone;
  const IoResult result = socket.receive(bytes_ + end_, sizeof bytes_ - end_);
  if (result.status == IoStatus::kDone) end_ += result.bytes;
  return result.status;
}

wire::Decoded ReceiveBuffer::next(wire::Frame& frame) {
  return wire::decode_frame(unread(), crc32c, frame);
}

void ReceiveBuffer::take(Bytes bytes) {
  clear();
  if (bytes.size() > sizeof bytes_) return;
  if (!bytes.empty()) std::memcpy(bytes_, bytes.data(), bytes.size());
  end_ = bytes.size();
}

}  // namespace collect::agent
