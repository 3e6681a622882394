// One connection that speaks frames, whole ones and broken ones. The caller polls fd() and drives
// it; sending waits at most for the bound.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/address.h"
#include "formats/core/bytes.h"
#include "formats/core/result.h"
#include "proto/conformance/check.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/layout.h"
#include "proto/wire/wire.pb.h"

namespace collect::conformance {

using Octets = std::vector<uint8_t>;

struct ReceivedFrame {
  wire::FrameType type{};
  Octets body;  // of a control frame
  PageHeader page{};
  Octets page_bytes;
  bool has_zeros = true;  // `flags` and `reserved`
  Clock::time_point at{};

  // Empty: the body is no such message.
  template <class Message>
  std::optional<Message> parsed() const {
    Message message;
    if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) return std::nullopt;
    return message;
  }
};

// Serves in short turns, at most for `bound`, until `holds`. False: it does not hold.
bool serve_until(const std::function<bool()>& holds, milliseconds bound,
                 const std::function<void(milliseconds turn)>& serve);

class FrameLink {
 public:
  FrameLink() = default;
  FrameLink(int handle, milliseconds send_bound);
  FrameLink(FrameLink&& other) noexcept;
  FrameLink& operator=(FrameLink&& other) noexcept;
  ~FrameLink() { close(); }

  static Result<FrameLink> connect(const Address& address, milliseconds bound);

  int fd() const { return handle_; }
  bool is_open() const { return handle_ >= 0; }
  bool has_ended() const { return ended_; }  // by the peer
  void close();

  bool send_bytes(Bytes bytes);
  bool send(wire::FrameType type, const google::protobuf::MessageLite& message);
  bool send_byte_by_byte(Bytes bytes);

  // Takes what has arrived. Called when fd() is readable.
  void read_some();
  // The next whole frame. Nothing: not there yet, or error() says that none will come.
  std::optional<ReceivedFrame> take();
  wire::FrameError error() const { return error_; }

 private:
  int handle_ = -1;
  bool ended_ = false;
  wire::FrameError error_ = wire::FrameError::kNone;
  Octets buffer_;
  size_t taken_ = 0;  // of buffer_
};

// Listens on a free loopback port, or on the given address.
class Listener {
 public:
  Listener() = default;
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Status open();
  const std::string& address() const { return address_; }
  int fd() const { return handle_; }
  // Called when fd() is readable.
  std::optional<FrameLink> accept(milliseconds send_bound);

 private:
  int handle_ = -1;
  std::string address_;
};

// Waits until one of the descriptors is readable, or for the bound; those below 0 are left out.
void wait_readable(const std::vector<int>& handles, milliseconds bound);

std::string random_bytes(size_t count);

// Whole frames, to be sent or to be broken.
Octets frame_bytes(wire::FrameType type, const google::protobuf::MessageLite& message);
Octets frame_bytes(wire::FrameType type, Bytes body);
// Sets bytes_crc32c.
Octets page_frame_bytes(PageHeader page, Bytes bytes);
// The checksum of a frame header whose fields were changed.
void seal_header(Octets& frame);

std::string type_text(wire::FrameType type);            // "Page", or "frame type 99"
std::string refusal_text(const wire::Refuse& refusal);  // "Refuse(PROTOCOL: reason)"

}  // namespace collect::conformance
