#include "tests/e2e/raw_agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>

#include "formats/atf/layout.h"
#include "formats/core/crc32.h"
#include "proto/wire/frame_decoder.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"

namespace collect::e2e {
namespace {

constexpr timeval kReceiveLimit{20, 0};

uint32_t checksum(Bytes bytes, uint32_t previous) {
  return crc32c(bytes, previous);
}

}  // namespace

RawConnection::RawConnection(uint16_t port, in_addr_t from) {
  connect_to(fakes::tcp4(INADDR_LOOPBACK, port), from);
}

RawConnection::RawConnection(const std::string& unix_path) {
  connect_to(fakes::unix_name(unix_path));
}

void RawConnection::connect_to(const fakes::SocketAddress& address, in_addr_t from) {
  socket_ = socket(address.raw.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &kReceiveLimit, sizeof kReceiveLimit);
  setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kReceiveLimit, sizeof kReceiveLimit);
  if (from != INADDR_ANY) {
    const fakes::SocketAddress own = fakes::tcp4(from, 0);
    at_end_ = bind(socket_, own.get(), own.bytes) != 0;
  }
  at_end_ = at_end_ || connect(socket_, address.get(), address.bytes) != 0;
}

RawConnection::RawConnection(RawConnection&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)),
      buffer_(std::move(other.buffer_)),
      at_end_(std::exchange(other.at_end_, true)) {}

RawConnection::~RawConnection() {
  close();
}

void RawConnection::close() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  at_end_ = true;
}

bool RawConnection::send(const Octets& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return false;
    sent += static_cast<size_t>(now);
  }
  return true;
}

size_t RawConnection::send_until_held(const Octets& bytes, std::chrono::milliseconds patience) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    pollfd writable{socket_, POLLOUT, 0};
    if (poll(&writable, 1, static_cast<int>(patience.count())) <= 0) break;
    const ssize_t now =
        ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (now <= 0 && errno != EAGAIN) break;
    sent += static_cast<size_t>(std::max<ssize_t>(now, 0));
  }
  return sent;
}

bool RawConnection::send(wire::FrameType type, const google::protobuf::MessageLite& message) {
  return send(frame_bytes(type, message.SerializeAsString()));
}

bool RawConnection::read_more() {
  uint8_t chunk[65536];
  const ssize_t now = at_end_ ? 0 : recv(socket_, chunk, sizeof chunk, 0);
  if (now <= 0) {
    // A reset is an end too; silence for the whole limit is not.
    at_end_ = now == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
    return false;
  }
  buffer_.insert(buffer_.end(), chunk, chunk + now);
  return true;
}

std::optional<ReceivedFrame> RawConnection::receive() {
  for (;;) {
    wire::Frame frame;
    const wire::Decoded decoded = wire::decode_frame(buffer_, checksum, frame);
    if (decoded.status == wire::DecodeStatus::kBad) return std::nullopt;
    if (decoded.status == wire::DecodeStatus::kFrame) {
      ReceivedFrame received{frame.type, std::string(frame.body.begin(), frame.body.end())};
      buffer_.erase(buffer_.begin(), buffer_.begin() + frame.frame_bytes);
      return received;
    }
    if (!read_more()) return std::nullopt;
  }
}

bool RawConnection::receive_ack(uint32_t stream_id, uint64_t next) {
  while (const std::optional<ReceivedFrame> frame = receive()) {
    wire::Ack ack;
    if (frame->type != wire::FrameType::kAck || !ack.ParseFromString(frame->body)) continue;
    for (const wire::StreamPosition& position : ack.positions()) {
      if (position.stream_id() == stream_id && position.index_next() >= next) return true;
    }
  }
  return false;
}

std::optional<wire::Refuse> RawConnection::refusal() {
  while (const std::optional<ReceivedFrame> frame = receive()) {
    if (frame->type != wire::FrameType::kRefuse) continue;
    wire::Refuse refuse;
    if (!refuse.ParseFromString(frame->body)) return std::nullopt;
    return refuse;
  }
  return std::nullopt;
}

bool RawConnection::is_closed_by_peer() {
  while (read_more()) buffer_.clear();
  return at_end_;
}

Octets frame_bytes(wire::FrameType type, const std::string& body) {
  const auto* start = reinterpret_cast<const uint8_t*>(body.data());
  Octets bytes(sizeof(wire::FrameHeader));
  wire::encode_control_header(type, Bytes(start, body.size()), checksum, bytes.data());
  bytes.insert(bytes.end(), start, start + body.size());
  return bytes;
}

Octets events(uint64_t first_ns, uint32_t count) {
  Octets bytes(size_t{count} * atf::kEventBytes);
  for (uint32_t i = 0; i < count; ++i) {
    atf::IndexEventV2 event{};
    event.timestamp_ns = first_ns + i;
    event.function_id = 0x1000;
    event.detail_seq = atf::kNoDetail;
    event.event_kind =
        static_cast<uint8_t>(i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn);
    std::memcpy(bytes.data() + size_t{i} * atf::kEventBytes, &event, sizeof event);
  }
  return bytes;
}

namespace {

PageHeader page_header(uint32_t stream_id, uint64_t first_seq, const Octets& records) {
  PageHeader page{};
  page.stream_id = stream_id;
  page.first_seq = first_seq;
  page.record_count = static_cast<uint32_t>(records.size() / atf::kEventBytes);
  page.raw_bytes = static_cast<uint32_t>(records.size());
  if (page.record_count > 0) {
    page.first_ns = load_le<uint64_t>(records.data());
    page.last_ns = load_le<uint64_t>(records.data() + records.size() - atf::kEventBytes);
  }
  return page;
}

Octets with_prefix(const PageHeader& page, const Octets& sent) {
  Octets bytes(wire::kPagePrefixBytes);
  wire::encode_page_prefix(page, static_cast<uint32_t>(sent.size()), checksum, bytes.data());
  bytes.insert(bytes.end(), sent.begin(), sent.end());
  return bytes;
}

}  // namespace

Octets page_frame(PageHeader page, const Octets& sent) {
  page.bytes_crc32c = crc32c(sent);
  return with_prefix(page, sent);
}

Octets page_bytes(uint32_t stream_id, uint64_t first_seq, const Octets& records,
                  bool checksum_error) {
  PageHeader page = page_header(stream_id, first_seq, records);
  page.bytes_crc32c = crc32c(records) ^ (checksum_error ? 1u : 0u);
  return with_prefix(page, records);
}

Octets encoded_page_bytes(uint32_t stream_id, uint64_t first_seq, const Octets& records,
                          Codec codec) {
  PageHeader page = page_header(stream_id, first_seq, records);
  Octets sent(records.size());
  size_t size = 0;
  if (codec == Codec::kColumns) {
    const auto encoder = std::make_unique<wire::ColumnEncoder>();
    size = encoder->encode(Lane::kIndex, page.record_count, records, sent);
  } else if (codec == Codec::kTuples) {
    const auto encoder = std::make_unique<wire::TupleEncoder>();
    size = encoder->encode(page.record_count, records, sent);
  }
  if (size == 0) return page_frame(page, records);
  sent.resize(size);
  page.codec = codec;
  return page_frame(page, sent);
}

namespace {

// Agents of this machine alone are offered tuples.
std::string this_boot() {
  std::string line;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), line);
  return line;
}

}  // namespace

wire::Hello hello(wire::Channel channel, uint32_t pid, const std::string& process_id) {
  wire::Hello hello;
  hello.set_channel(channel);
  hello.set_min_version(wire::kProtocolVersion);
  hello.set_max_version(wire::kProtocolVersion);
  hello.set_features(wire::kFeatureColumns | wire::kFeatureTuples);
  static const std::string boot_id = this_boot();
  hello.set_boot_id(boot_id);
  hello.set_process_id(process_id);
  hello.set_nonce(fakes::fresh_nonce());
  hello.set_os(wire::OS_LINUX);
  hello.set_arch(wire::ARCH_X86_64);
  hello.set_pid(pid);
  hello.set_parent_pid(kRawParentPid);
  hello.set_agent_version(kRawAgentVersion);
  hello.set_process_name("raw_agent");
  hello.set_device_id("test");
  hello.set_clock_type(3);
  hello.set_atf_version(2);
  hello.set_recording(1);
  hello.set_is_recording(true);
  return hello;
}

std::optional<ReceivedFrame> introduce(RawConnection& connection, const wire::Hello& hello,
                                       const fakes::Secrets& secrets) {
  if (!connection.send(wire::FrameType::kHello, hello)) return std::nullopt;
  std::optional<ReceivedFrame> answer = connection.receive();
  wire::Challenge challenge;
  if (!answer || answer->type != wire::FrameType::kChallenge ||
      !challenge.ParseFromString(answer->body)) {
    return answer;
  }
  const wire::Proof proof = fakes::proof_for(hello, challenge, secrets, false);
  if (!connection.send(wire::FrameType::kProof, proof)) return std::nullopt;
  return connection.receive();
}

bool be_welcomed(RawConnection& connection, const wire::Hello& hello, fakes::Secrets& secrets) {
  auto answer = introduce(connection, hello, secrets);
  while (answer && answer->type == wire::FrameType::kResume) answer = connection.receive();
  wire::Welcome welcome;
  if (!answer || answer->type != wire::FrameType::kWelcome ||
      !welcome.ParseFromString(answer->body)) {
    return false;
  }
  if (!welcome.resume_key().empty()) secrets.resume_key = welcome.resume_key();
  return true;
}

bool start_recording(RawConnection& data, uint32_t recording) {
  wire::RecordingStart start;
  start.set_recording(recording);
  start.set_start_ns(1);
  start.set_atf_version(2);
  return data.send(wire::FrameType::kRecordingStart, start);
}

bool open_stream(RawConnection& data, uint32_t recording, uint32_t stream_id,
                 const std::string& thread_name) {
  wire::StreamOpen open;
  open.set_recording(recording);
  open.set_stream_id(stream_id);
  open.set_thread_id(stream_id);
  open.set_thread_name(thread_name);
  open.set_start_ns(1);
  return data.send(wire::FrameType::kStreamOpen, open);
}

bool close_stream(RawConnection& data, uint32_t stream_id, uint64_t index_count) {
  wire::StreamClose close;
  close.set_stream_id(stream_id);
  close.set_index_count(index_count);
  return data.send(wire::FrameType::kStreamClose, close);
}

bool end_recording(RawConnection& data, uint32_t recording) {
  wire::RecordingEnd end;
  end.set_recording(recording);
  return data.send(wire::FrameType::kRecordingEnd, end);
}

RawAgent::RawAgent(RawConnection to_control, RawConnection to_data, uint32_t pid,
                   fakes::Secrets known)
    : control(std::move(to_control)),
      data(std::move(to_data)),
      process_id("0123456789ab"),
      secrets(std::move(known)) {
  // 16 bytes, different for each process number.
  for (int shift = 0; shift < 32; shift += 8) {
    process_id.push_back(static_cast<char>(pid >> shift & 0xFF));
  }
  if (!be_welcomed(control, hello(wire::CHANNEL_CONTROL, pid, process_id), secrets) ||
      !be_welcomed(data, hello(wire::CHANNEL_DATA, pid, process_id), secrets)) {
    return;
  }
  ready = start_recording(data, 1) && open_stream(data, 1, 1);
}

}  // namespace collect::e2e
