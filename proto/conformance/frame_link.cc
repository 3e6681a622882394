#include "proto/conformance/frame_link.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"

namespace collect::conformance {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

timeval time_of(milliseconds bound) {
  timeval time{};
  time.tv_sec = bound.count() / 1000;
  time.tv_usec = bound.count() % 1000 * 1000;
  return time;
}

int connected(int family, const sockaddr* where, socklen_t bytes, milliseconds bound) {
  const int handle = ::socket(family, SOCK_STREAM, 0);
  if (handle < 0) return -1;
  ::fcntl(handle, F_SETFD, FD_CLOEXEC);
  const timeval limit = time_of(bound);
  ::setsockopt(handle, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // connect() obeys it too
  if (::connect(handle, where, bytes) == 0) return handle;
  const int error = errno;
  ::close(handle);
  errno = error;
  return -1;
}

int connected_unix(const Address& address, milliseconds bound) {
  sockaddr_un where{};
  where.sun_family = AF_UNIX;
  const size_t skipped = address.kind == Address::Kind::kAbstract ? 1 : 0;
  std::memcpy(where.sun_path + skipped, address.host.data(), address.host.size());
  const size_t bytes =
      skipped == 0 ? sizeof where : offsetof(sockaddr_un, sun_path) + 1 + address.host.size();
  return connected(AF_UNIX, reinterpret_cast<const sockaddr*>(&where),
                   static_cast<socklen_t>(bytes), bound);
}

int connected_tcp(const Address& address, milliseconds bound) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &list) !=
      0) {
    errno = EHOSTUNREACH;
    return -1;
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, &::freeaddrinfo);
  for (const addrinfo* at = list; at != nullptr; at = at->ai_next) {
    const int handle = connected(at->ai_family, at->ai_addr, at->ai_addrlen, bound);
    if (handle >= 0) return handle;
  }
  return -1;
}

}  // namespace

bool serve_until(const std::function<bool()>& holds, milliseconds bound,
                 const std::function<void(milliseconds turn)>& serve) {
  constexpr milliseconds kTurn{20};
  const auto deadline = Clock::now() + bound;
  while (!holds()) {
    const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return false;
    serve(std::min(left, kTurn));
  }
  return true;
}

FrameLink::FrameLink(int handle, milliseconds send_bound) : handle_(handle) {
  const timeval limit = time_of(send_bound);
  ::setsockopt(handle_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  const int on = 1;
  ::setsockopt(handle_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // fails on a Unix socket
}

FrameLink::FrameLink(FrameLink&& other) noexcept {
  *this = std::move(other);
}

FrameLink& FrameLink::operator=(FrameLink&& other) noexcept {
  if (this == &other) return *this;
  close();
  handle_ = std::exchange(other.handle_, -1);
  ended_ = other.ended_;
  error_ = other.error_;
  buffer_ = std::move(other.buffer_);
  taken_ = other.taken_;
  return *this;
}

Result<FrameLink> FrameLink::connect(const Address& address, milliseconds bound) {
  const int handle = address.kind == Address::Kind::kTcp ? connected_tcp(address, bound)
                                                         : connected_unix(address, bound);
  if (handle >= 0) return FrameLink(handle, bound);
  return Error{Code::kUnavailable, fmt::format("no collector answers at {}: {}", to_string(address),
                                               std::strerror(errno))};
}

void FrameLink::close() {
  if (handle_ >= 0) ::close(handle_);
  handle_ = -1;
}

bool FrameLink::send_bytes(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(handle_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return true;
}

bool FrameLink::send(wire::FrameType type, const google::protobuf::MessageLite& message) {
  return send_bytes(frame_bytes(type, message));
}

bool FrameLink::send_byte_by_byte(Bytes bytes) {
  for (const uint8_t& byte : bytes) {
    if (!send_bytes(Bytes(&byte, 1))) return false;
  }
  return true;
}

void FrameLink::read_some() {
  if (handle_ < 0 || ended_) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<ptrdiff_t>(taken_));
  taken_ = 0;
  const size_t before = buffer_.size();
  buffer_.resize(before + kReadBytes);
  ssize_t count = 0;
  do {
    count = ::recv(handle_, buffer_.data() + before, kReadBytes, MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  buffer_.resize(before + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK)) ended_ = true;
}

std::optional<ReceivedFrame> FrameLink::take() {
  if (error_ != wire::FrameError::kNone) return std::nullopt;
  const Bytes waiting = Bytes(buffer_).subspan(taken_);
  wire::Frame frame;
  const wire::Decoded decoded = wire::decode_frame(waiting, &crc32c, frame);
  error_ = decoded.error;
  if (decoded.status != wire::DecodeStatus::kFrame) return std::nullopt;
  ReceivedFrame taken;
  taken.type = frame.type;
  taken.body.assign(frame.body.begin(), frame.body.end());
  taken.page = frame.page;
  taken.page_bytes.assign(frame.page_bytes.begin(), frame.page_bytes.end());
  for (const size_t offset : {6, 7, 16, 17, 18, 19}) {
    taken.has_zeros = taken.has_zeros && waiting[offset] == 0;
  }
  taken.at = Clock::now();
  taken_ += frame.frame_bytes;
  return taken;
}

Listener::~Listener() {
  if (handle_ >= 0) ::close(handle_);
}

Status Listener::open() {
  handle_ = ::socket(AF_INET, SOCK_STREAM, 0);
  if (handle_ < 0) return errno_error(errno, "a socket");
  ::fcntl(handle_, F_SETFD, FD_CLOEXEC);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof where;
  if (::bind(handle_, reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0 ||
      ::listen(handle_, SOMAXCONN) != 0 || ::fcntl(handle_, F_SETFL, O_NONBLOCK) != 0 ||
      ::getsockname(handle_, reinterpret_cast<sockaddr*>(&where), &bytes) != 0) {
    return errno_error(errno, "a listening socket");
  }
  address_ = fmt::format("127.0.0.1:{}", ntohs(where.sin_port));
  return {};
}

std::optional<FrameLink> Listener::accept(milliseconds send_bound) {
  const int handle = ::accept(handle_, nullptr, nullptr);
  if (handle < 0) return std::nullopt;
  ::fcntl(handle, F_SETFD, FD_CLOEXEC);
  return FrameLink(handle, send_bound);
}

void wait_readable(const std::vector<int>& handles, milliseconds bound) {
  std::vector<pollfd> waited;
  waited.reserve(handles.size());
  for (const int handle : handles) waited.push_back({handle, POLLIN, 0});
  (void)::poll(waited.data(), waited.size(), static_cast<int>(std::max<int64_t>(bound.count(), 0)));
}

std::string random_bytes(size_t count) {
  std::string bytes(count, '\0');
  COLLECT_CHECK(::getentropy(bytes.data(), bytes.size()) == 0);
  return bytes;
}

Octets frame_bytes(wire::FrameType type, const google::protobuf::MessageLite& message) {
  const std::string body = message.SerializeAsString();
  return frame_bytes(type, Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size()));
}

Octets frame_bytes(wire::FrameType type, Bytes body) {
  Octets frame(sizeof(wire::FrameHeader));
  wire::encode_control_header(type, body, &crc32c, frame.data());
  frame.insert(frame.end(), body.begin(), body.end());
  return frame;
}

Octets page_frame_bytes(PageHeader page, Bytes bytes) {
  page.bytes_crc32c = crc32c(bytes);
  Octets frame(wire::kPagePrefixBytes);
  wire::encode_page_prefix(page, static_cast<uint32_t>(bytes.size()), &crc32c, frame.data());
  frame.insert(frame.end(), bytes.begin(), bytes.end());
  return frame;
}

void seal_header(Octets& frame) {
  const uint32_t sum = crc32c(Bytes(frame).first(20));
  for (size_t i = 0; i < 4; ++i) frame[20 + i] = static_cast<uint8_t>(sum >> (8 * i));
}

namespace {

// Empty: of a later version.
std::string_view type_name(wire::FrameType type) {
  static constexpr std::pair<wire::FrameType, const char*> kNames[] = {
      {wire::FrameType::kDial, "Dial"},
      {wire::FrameType::kHello, "Hello"},
      {wire::FrameType::kResume, "Resume"},
      {wire::FrameType::kWelcome, "Welcome"},
      {wire::FrameType::kRefuse, "Refuse"},
      {wire::FrameType::kChallenge, "Challenge"},
      {wire::FrameType::kProof, "Proof"},
      {wire::FrameType::kRecordingStart, "RecordingStart"},
      {wire::FrameType::kModules, "Modules"},
      {wire::FrameType::kStreamOpen, "StreamOpen"},
      {wire::FrameType::kPage, "Page"},
      {wire::FrameType::kStreamClose, "StreamClose"},
      {wire::FrameType::kDetailState, "DetailState"},
      {wire::FrameType::kRecordingEnd, "RecordingEnd"},
      {wire::FrameType::kStalls, "Stalls"},
      {wire::FrameType::kAck, "Ack"},
      {wire::FrameType::kCommand, "Command"},
      {wire::FrameType::kCommandResult, "CommandResult"},
      {wire::FrameType::kClockProbe, "ClockProbe"},
      {wire::FrameType::kClockReply, "ClockReply"},
      {wire::FrameType::kHeartbeat, "Heartbeat"},
      {wire::FrameType::kBye, "Bye"},
      {wire::FrameType::kWantFunctionFilter, "WantFunctionFilter"},
      {wire::FrameType::kCounters, "Counters"},
  };
  for (const auto& [known, name] : kNames) {
    if (known == type) return name;
  }
  return {};
}

}  // namespace

std::string type_text(wire::FrameType type) {
  if (is_known(type)) return std::string(type_name(type));
  return fmt::format("frame type {}", static_cast<unsigned>(type));
}

std::string refusal_text(const wire::Refuse& refusal) {
  std::string name = wire::RefuseCode_Name(refusal.code());
  if (name.starts_with("REFUSE_")) name.erase(0, 7);
  if (name.empty()) name = std::to_string(refusal.code());
  return fmt::format("Refuse({}{}: {})", name, refusal.retry() ? ", retry" : "", refusal.reason());
}

}  // namespace collect::conformance
