#include "tests/fakes/frame_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "formats/core/crc32.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"

namespace collect::fakes {
namespace {

using Clock = std::chrono::steady_clock;

// Whether the handle is readable before the deadline.
bool wait_readable(int handle, Clock::time_point deadline) {
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd waited{handle, POLLIN, 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof address.sun_path - 1));
  return address;
}

}  // namespace

FrameSocket::FrameSocket(FrameSocket&& other) noexcept {
  *this = std::move(other);
}

FrameSocket& FrameSocket::operator=(FrameSocket&& other) noexcept {
  if (this == &other) return *this;
  close();
  handle_ = std::exchange(other.handle_, -1);
  buffer_ = std::move(other.buffer_);
  return *this;
}

FrameSocket FrameSocket::connect(const std::string& address) {
  int handle = -1;
  int failed = -1;
  if (address.starts_with("unix:")) {
    const sockaddr_un where = unix_address(address.substr(5));
    handle = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    failed = ::connect(handle, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  } else {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port =
        htons(static_cast<uint16_t>(std::atoi(address.substr(address.rfind(':') + 1).c_str())));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    handle = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    (void)::setsockopt(handle, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    failed = ::connect(handle, reinterpret_cast<const sockaddr*>(&where), sizeof where);
  }
  FrameSocket socket(handle);
  if (failed != 0) socket.close();
  return socket;
}

void FrameSocket::close() {
  if (handle_ >= 0) ::close(handle_);
  handle_ = -1;
}

void FrameSocket::end_sending() {
  ::shutdown(handle_, SHUT_WR);
}

void FrameSocket::reset() {
  const linger now{1, 0};
  (void)::setsockopt(handle_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  close();
}

bool FrameSocket::send_bytes(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(handle_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool FrameSocket::send(wire::FrameType type, const google::protobuf::MessageLite& message) {
  return send_bytes(frame_bytes(type, message));
}

bool FrameSocket::send_page(const PageHeader& page, Bytes bytes) {
  return send_bytes(page_frame_bytes(page, bytes));
}

bool FrameSocket::fill(Clock::time_point deadline) {
  if (handle_ < 0) return false;
  if (!wait_readable(handle_, deadline)) {
    timed_out_ = true;
    return false;
  }
  uint8_t chunk[65536];
  const ssize_t count = ::recv(handle_, chunk, sizeof chunk, 0);
  if (count <= 0) return false;
  buffer_.insert(buffer_.end(), chunk, chunk + count);
  return true;
}

std::optional<ReceivedFrame> FrameSocket::receive(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  timed_out_ = false;
  while (true) {
    wire::Frame frame;
    const wire::Decoded decoded = wire::decode_frame(buffer_, &crc32c, frame);
    if (decoded.status == wire::DecodeStatus::kBad) return std::nullopt;
    if (decoded.status == wire::DecodeStatus::kFrame) {
      ReceivedFrame received{frame.type, {frame.body.begin(), frame.body.end()}};
      buffer_.erase(buffer_.begin(), buffer_.begin() + frame.frame_bytes);
      return received;
    }
    if (!fill(deadline)) return std::nullopt;
  }
}

std::optional<ReceivedFrame> FrameSocket::receive_type(wire::FrameType type,
                                                       std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    auto frame = receive(std::max(left, std::chrono::milliseconds{0}));
    if (!frame || frame->type == type) return frame;
  }
}

bool FrameSocket::ends(std::chrono::milliseconds patience) {
  const auto deadline = Clock::now() + patience;
  timed_out_ = false;
  while (fill(deadline)) buffer_.clear();
  return !timed_out_;
}

ListeningSocket::ListeningSocket(const std::string& unix_path) : unix_path_(unix_path) {
  if (!unix_path.empty()) {
    const sockaddr_un where = unix_address(unix_path);
    handle_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (::bind(handle_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) close();
    address_ = "unix:" + unix_path;
  } else {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    handle_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t bytes = sizeof where;
    if (::bind(handle_, reinterpret_cast<const sockaddr*>(&where), bytes) != 0 ||
        ::getsockname(handle_, reinterpret_cast<sockaddr*>(&where), &bytes) != 0) {
      close();
    }
    address_ = "127.0.0.1:" + std::to_string(ntohs(where.sin_port));
  }
  if (handle_ >= 0 && ::listen(handle_, 16) != 0) close();
}

ListeningSocket::~ListeningSocket() {
  close();
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
}

void ListeningSocket::close() {
  if (handle_ >= 0) ::close(handle_);
  handle_ = -1;
}

FrameSocket ListeningSocket::accept(std::chrono::milliseconds patience) {
  if (handle_ < 0 || !wait_readable(handle_, Clock::now() + patience)) return FrameSocket();
  return FrameSocket(::accept4(handle_, nullptr, nullptr, SOCK_CLOEXEC));
}

std::vector<uint8_t> frame_bytes(wire::FrameType type,
                                 const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  return frame_bytes(type, Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size()));
}

std::vector<uint8_t> frame_bytes(wire::FrameType type, Bytes body) {
  std::vector<uint8_t> bytes(sizeof(wire::FrameHeader) + body.size());
  wire::encode_control_header(type, body, &crc32c, bytes.data());
  std::copy(body.begin(), body.end(), bytes.begin() + sizeof(wire::FrameHeader));
  return bytes;
}

std::vector<uint8_t> page_frame_bytes(PageHeader page, Bytes bytes) {
  page.raw_bytes = static_cast<uint32_t>(bytes.size());
  page.bytes_crc32c = crc32c(bytes);
  std::vector<uint8_t> frame(wire::kPagePrefixBytes + bytes.size());
  wire::encode_page_prefix(page, static_cast<uint32_t>(bytes.size()), &crc32c, frame.data());
  std::copy(bytes.begin(), bytes.end(), frame.begin() + wire::kPagePrefixBytes);
  return frame;
}

std::vector<uint8_t> encoded_page_frame_bytes(PageHeader page, Bytes sent, uint32_t raw_bytes,
                                              Codec codec) {
  page.codec = codec;
  page.raw_bytes = raw_bytes;
  page.bytes_crc32c = crc32c(sent);
  std::vector<uint8_t> frame(wire::kPagePrefixBytes + sent.size());
  wire::encode_page_prefix(page, static_cast<uint32_t>(sent.size()), &crc32c, frame.data());
  std::copy(sent.begin(), sent.end(), frame.begin() + wire::kPagePrefixBytes);
  return frame;
}

std::vector<uint8_t> encoded_page_frame_bytes(PageHeader page, Bytes records) {
  const auto encoder = std::make_unique<wire::ColumnEncoder>();
  std::vector<uint8_t> sent(records.size());
  sent.resize(encoder->encode(page.lane, page.record_count, records, sent));
  return encoded_page_frame_bytes(page, sent, static_cast<uint32_t>(records.size()));
}

std::vector<uint8_t> tuple_page_frame_bytes(PageHeader page, Bytes records) {
  const auto encoder = std::make_unique<wire::TupleEncoder>();
  std::vector<uint8_t> sent(records.size());
  sent.resize(encoder->encode(page.record_count, records, sent));
  return encoded_page_frame_bytes(page, sent, static_cast<uint32_t>(records.size()),
                                  Codec::kTuples);
}

}  // namespace collect::fakes
