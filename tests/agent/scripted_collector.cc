#include "tests/agent/scripted_collector.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <utility>

#include "formats/core/crc32.h"
#include "proto/wire/frame_encoder.h"
#include "proto/wire/page_codec.h"

namespace collect::agent {
namespace {

constexpr int kPatienceMs = 60000;

uint32_t crc(Bytes bytes, uint32_t previous) {
  return crc32c(bytes, previous);
}

bool wait_for(int fd, short events) {
  pollfd waiting{fd, events, 0};
  return poll(&waiting, 1, kPatienceMs) == 1;
}

}  // namespace

void Peer::fail(const char* what) {
  ADD_FAILURE() << what;
}

Peer::Peer(Peer&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), buffer_(std::move(other.buffer_)) {}

Peer& Peer::operator=(Peer&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
    buffer_ = std::move(other.buffer_);
  }
  return *this;
}

void Peer::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  buffer_.clear();
}

Peer Peer::dial_tcp(uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) {
    ::close(fd);
    return Peer();
  }
  return Peer(fd);
}

Peer Peer::dial_unix(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path.data(), path.size());
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() +
                                            (path[0] == '\0' ? 0 : 1));
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), bytes) != 0) {
    ::close(fd);
    return Peer();
  }
  return Peer(fd);
}

bool Peer::read_some() {
  if (fd_ < 0 || !wait_for(fd_, POLLIN)) return false;
  const size_t before = buffer_.size();
  buffer_.resize(before + 65536);
  const ssize_t got = recv(fd_, buffer_.data() + before, 65536, 0);
  buffer_.resize(before + static_cast<size_t>(got > 0 ? got : 0));
  return got > 0;
}

std::optional<GotFrame> Peer::next() {
  for (;;) {
    wire::Frame frame;
    const auto decoded = wire::decode_frame(buffer_, crc, frame);
    if (decoded.status == wire::DecodeStatus::kBad) {
      ADD_FAILURE() << "the agent sent: " << wire::frame_error_text(decoded.error);
      return std::nullopt;
    }
    if (decoded.status == wire::DecodeStatus::kFrame) {
      GotFrame got;
      got.type = frame.type;
      got.body.assign(frame.body.begin(), frame.body.end());
      got.page = frame.page;
      got.page_bytes.assign(frame.page_bytes.begin(), frame.page_bytes.end());
      buffer_.erase(buffer_.begin(), buffer_.begin() + frame.frame_bytes);
      return got;
    }
    if (!read_some()) return std::nullopt;
  }
}

std::optional<GotFrame> Peer::next_of(wire::FrameType type, std::vector<GotFrame>* skipped) {
  while (auto frame = next()) {
    if (frame->type == type) return frame;
    if (skipped != nullptr) skipped->push_back(*frame);
  }
  return std::nullopt;
}

bool Peer::ends() {
  while (read_some()) buffer_.clear();
  char byte = 0;
  return recv(fd_, &byte, 1, MSG_DONTWAIT) == 0 || errno == ECONNRESET;
}

size_t Peer::swallow(size_t count) {
  while (buffer_.size() < count && read_some()) {
  }
  const size_t taken = std::min(count, buffer_.size());
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(taken));
  return taken;
}

void Peer::send_bytes(const std::string& bytes) {
  size_t sent = 0;
  while (sent < bytes.size()) {
    const ssize_t now = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return;
    sent += static_cast<size_t>(now);
  }
}

void Peer::send_frame(wire::FrameType type, const std::string& body) {
  uint8_t header[sizeof(wire::FrameHeader)];
  wire::encode_control_header(
      type, Bytes(reinterpret_cast<const uint8_t*>(body.data()), body.size()), crc, header);
  send_bytes(std::string(reinterpret_cast<char*>(header), sizeof header) + body);
}

ScriptedCollector::ScriptedCollector() {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof at;
  EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  EXPECT_EQ(listen(listener_, 16), 0);
  EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &bytes), 0);
  port_ = ntohs(at.sin_port);
}

ScriptedCollector::~ScriptedCollector() {
  ::close(listener_);
}

Peer ScriptedCollector::accept() {
  if (!wait_for(listener_, POLLIN)) {
    ADD_FAILURE() << "the agent did not connect";
    return Peer();
  }
  return Peer(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
}

void ScriptedCollector::send_challenge(Peer& peer, const wire::Hello& hello, bool dialled) {
  challenges_[hello.nonce()] = fakes::challenge_for(hello, token, dialled);
  if (!id.empty()) challenges_[hello.nonce()].set_collector_id(id);
  peer.send(wire::FrameType::kChallenge, challenges_[hello.nonce()]);
}

wire::Proof ScriptedCollector::take_proof(Peer& peer, const wire::Hello& hello, bool dialled) {
  const auto proof = peer.expect<wire::Proof>(wire::FrameType::kProof);
  const bool is_known = known.contains(hello.process_id());
  const fakes::Secrets secrets{agent_token, is_known ? resume_key : ""};
  const wire::Proof wanted = fakes::proof_for(hello, challenges_[hello.nonce()], secrets, dialled);
  EXPECT_EQ(proof.token_proof(), wanted.token_proof());
  if (is_known) {
    EXPECT_EQ(proof.resume_proof(), wanted.resume_proof());
  }
  return proof;
}

wire::Hello ScriptedCollector::challenge(Peer& peer, bool dialled) {
  const auto hello = peer.expect<wire::Hello>(wire::FrameType::kHello);
  send_challenge(peer, hello, dialled);
  (void)take_proof(peer, hello, dialled);
  return hello;
}

void ScriptedCollector::greet_control(uint32_t heartbeat_ms) {
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_collector("script");
  welcome.set_heartbeat_ms(heartbeat_ms);
  if (known.insert(control_hello.process_id()).second) welcome.set_resume_key(resume_key);
  control.send(wire::FrameType::kWelcome, welcome);
}

void ScriptedCollector::greet_data(bool resumed) {
  if (resumed) {
    wire::Resume resume;
    *resume.mutable_positions() = ack().positions();
    data.send(wire::FrameType::kResume, resume);
  }
  wire::Welcome welcome;
  welcome.set_version(wire::kProtocolVersion);
  welcome.set_features(features);
  welcome.set_resumed(resumed);
  data.send(wire::FrameType::kWelcome, welcome);
}

void ScriptedCollector::welcome_pair(bool resumed, uint32_t heartbeat_ms) {
  control = accept();
  control_hello = challenge(control);
  EXPECT_EQ(control_hello.channel(), wire::CHANNEL_CONTROL);
  greet_control(heartbeat_ms);
  data = accept();
  data_hello = challenge(data);
  EXPECT_EQ(data_hello.channel(), wire::CHANNEL_DATA);
  greet_data(resumed);
}

wire::Hello ScriptedCollector::dial(Peer& peer, wire::Channel channel) {
  wire::Dial dial;
  dial.set_min_version(wire::kProtocolVersion);
  dial.set_max_version(wire::kProtocolVersion);
  dial.set_channel(channel);
  peer.send(wire::FrameType::kDial, dial);
  return peer.expect<wire::Hello>(wire::FrameType::kHello);
}

void ScriptedCollector::dial_pair(uint16_t port, bool resumed, uint32_t heartbeat_ms) {
  // Data first: the order is the collector's choice. Its proof comes when control is welcomed.
  data = Peer::dial_tcp(port);
  data_hello = dial(data, wire::CHANNEL_DATA);
  send_challenge(data, data_hello, true);
  control = Peer::dial_tcp(port);
  control_hello = dial(control, wire::CHANNEL_CONTROL);
  send_challenge(control, control_hello, true);
  (void)take_proof(control, control_hello, true);
  greet_control(heartbeat_ms);
  (void)take_proof(data, data_hello, true);
  greet_data(resumed);
}

std::optional<GotFrame> ScriptedCollector::take() {
  auto frame = data.next();
  if (!frame) return frame;
  if (frame->type == wire::FrameType::kModules) {
    wire::Modules got;
    EXPECT_TRUE(got.ParseFromString(frame->body));
    modules.insert(modules.end(), got.modules().begin(), got.modules().end());
  } else if (frame->type == wire::FrameType::kStreamOpen) {
    wire::StreamOpen got;
    EXPECT_TRUE(got.ParseFromString(frame->body));
    opened[got.stream_id()] = got;
  } else if (frame->type == wire::FrameType::kStreamClose) {
    wire::StreamClose got;
    EXPECT_TRUE(got.ParseFromString(frame->body));
    EXPECT_TRUE(opened.contains(got.stream_id()));
    closed[got.stream_id()] = got;
  } else if (frame->type == wire::FrameType::kDetailState) {
    wire::DetailState got;
    EXPECT_TRUE(got.ParseFromString(frame->body));
    detail_states.push_back(got);
  } else if (frame->type == wire::FrameType::kPage) {
    const PageHeader& page = frame->page;
    EXPECT_TRUE(opened.contains(page.stream_id)) << "a page before its StreamOpen";
    StoredLane& stored = lane(page.stream_id, static_cast<uint32_t>(page.lane));
    if (page.first_seq > stored.next) stored.jumps += page.first_seq - stored.next;
    if (page.first_seq < stored.next) stored.repeats += stored.next - page.first_seq;
    EXPECT_GE(page.lost_total, stored.lost_total);
    stored.lost_total = page.lost_total;
    stored.lost_reasons |= page.lost_reasons;
    if (page.codec != Codec::kRaw) {
      std::vector<uint8_t> records(page.raw_bytes);
      std::vector<uint8_t> scratch(page.raw_bytes);
      EXPECT_EQ(wire::decode_page(page, frame->page_bytes, scratch, records),
                wire::PageCodecError::kNone);
      frame->page_bytes = std::move(records);
      ++encoded_pages;
    }
    stored.bytes.insert(stored.bytes.end(), frame->page_bytes.begin(), frame->page_bytes.end());
    stored.next = page.first_seq + page.record_count;
  }
  return frame;
}

GotFrame ScriptedCollector::take_until(wire::FrameType type) {
  while (auto frame = take()) {
    if (frame->type == type) return *frame;
  }
  ADD_FAILURE() << "the data channel ended before frame type " << static_cast<int>(type);
  return {};
}

void ScriptedCollector::take_records(uint32_t stream_id, uint32_t which, uint64_t count) {
  while (lane(stream_id, which).next < count) {
    if (!take()) {
      ADD_FAILURE() << "the data channel ended at record " << lane(stream_id, which).next;
      return;
    }
  }
}

void ScriptedCollector::forget() {
  modules.clear();
  opened.clear();
  closed.clear();
  detail_states.clear();
  lanes_.clear();
  encoded_pages = 0;
}

wire::Ack ScriptedCollector::ack() const {
  wire::Ack ack;
  for (const auto& [stream_id, open] : opened) {
    auto* position = ack.add_positions();
    position->set_stream_id(stream_id);
    const auto index = lanes_.find({stream_id, 0});
    const auto detail = lanes_.find({stream_id, 1});
    if (index != lanes_.end()) position->set_index_next(index->second.next);
    if (detail != lanes_.end()) position->set_detail_next(detail->second.next);
    position->set_closed(closed.contains(stream_id));
  }
  return ack;
}

wire::CommandResult ScriptedCollector::command(wire::Command command) {
  command.set_command_id(next_command_++);
  control.send(wire::FrameType::kCommand, command);
  for (;;) {
    auto result = control.expect<wire::CommandResult>(wire::FrameType::kCommandResult);
    if (result.command_id() == command.command_id() || testing::Test::HasFailure()) return result;
  }
}

void ScriptedCollector::seal() {
  wire::RecordingEnd end;
  EXPECT_TRUE(end.ParseFromString(take_until(wire::FrameType::kRecordingEnd).body));
  wire::Ack last = ack();
  last.set_recording_ended(end.recording());
  control.send(wire::FrameType::kAck, last);
}

}  // namespace collect::agent
