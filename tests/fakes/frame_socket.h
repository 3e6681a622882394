// A blocking socket that speaks frames of the agent protocol, whole ones and broken ones. For
// tests: every wait has a deadline, and nothing throws.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/core/bytes.h"
#include "proto/wire/layout.h"
#include "proto/wire/wire.pb.h"

namespace collect::fakes {

inline constexpr std::chrono::milliseconds kPatience{20'000};  // longer than any loaded machine

struct ReceivedFrame {
  wire::FrameType type{};
  std::vector<uint8_t> body;

  template <class Message>
  Message parsed() const {
    Message message;
    if (!message.ParseFromArray(body.data(), static_cast<int>(body.size()))) message.Clear();
    return message;
  }
};

class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(int handle) : handle_(handle) {}
  FrameSocket(FrameSocket&& other) noexcept;
  FrameSocket& operator=(FrameSocket&& other) noexcept;
  ~FrameSocket() { close(); }

  // "127.0.0.1:port" or "unix:/path".
  static FrameSocket connect(const std::string& address);

  bool is_open() const { return handle_ >= 0; }
  int handle() const { return handle_; }
  void close();
  void end_sending();
  void reset();  // closes with a reset instead of an end

  bool send_bytes(Bytes bytes);
  bool send(wire::FrameType type, const google::protobuf::MessageLite& message);
  bool send_page(const PageHeader& page, Bytes bytes);

  // The next frame; empty at the end of the stream, on a bad frame, or when time is up
  // (timed_out()).
  std::optional<ReceivedFrame> receive(std::chrono::milliseconds patience = kPatience);
  // The next frame of this type, skipping others.
  std::optional<ReceivedFrame> receive_type(wire::FrameType type,
                                            std::chrono::milliseconds patience = kPatience);
  bool timed_out() const { return timed_out_; }
  // Whether the other side ends the connection in time; reads and drops what comes before.
  bool ends(std::chrono::milliseconds patience = kPatience);

 private:
  bool fill(std::chrono::steady_clock::time_point deadline);

  int handle_ = -1;
  bool timed_out_ = false;
  std::vector<uint8_t> buffer_;
};

class ListeningSocket {
 public:
  explicit ListeningSocket(const std::string& unix_path = {});  // empty: TCP, any port
  ~ListeningSocket();
  const std::string& address() const { return address_; }
  FrameSocket accept(std::chrono::milliseconds patience = kPatience);
  void close();

 private:
  int handle_ = -1;
  std::string address_;
  std::string unix_path_;
};

// The bytes of a whole control frame, to be damaged by the test.
std::vector<uint8_t> frame_bytes(wire::FrameType type,
                                 const google::protobuf::MessageLite& message);
std::vector<uint8_t> frame_bytes(wire::FrameType type, Bytes body);
std::vector<uint8_t> page_frame_bytes(PageHeader page, Bytes bytes);
// The same encoded with codec 1; or, with `raw_bytes`, what is said to be such a page of that
// length.
std::vector<uint8_t> encoded_page_frame_bytes(PageHeader page, Bytes records);
std::vector<uint8_t> encoded_page_frame_bytes(PageHeader page, Bytes sent, uint32_t raw_bytes,
                                              Codec codec = Codec::kColumns);
std::vector<uint8_t> tuple_page_frame_bytes(PageHeader page, Bytes records);  // codec 2

}  // namespace collect::fakes
