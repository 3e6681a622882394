#include "tests/bench/feeder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "formats/atf/layout.h"
#include "proto/wire/frame_encoder.h"
#include "tests/bench/cpu_time.h"

namespace collect::bench {
namespace {

constexpr uint32_t kEventsPerPage = 2048;  // 64 KiB, as the agent's pages
constexpr size_t kSinkRead = 256 * 1024;

// Calls and returns as a program makes them: each function calls a few others, most calls are
// short, the same each time.
class ImaginedProgram {
 public:
  uint64_t now_ns() const { return now_ns_; }

  e2e::Octets run(uint32_t count) {
    e2e::Octets records(size_t{count} * atf::kEventBytes);
    for (uint32_t i = 0; i < count; ++i) {
      const atf::IndexEventV2 event = next();
      std::memcpy(records.data() + size_t{i} * atf::kEventBytes, &event, sizeof event);
    }
    return records;
  }

 private:
  static constexpr uint32_t kFunctions = 400;
  static constexpr size_t kMaxDepth = 40;

  uint32_t random(uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33) % below;
  }

  atf::IndexEventV2 next() {
    const bool calls = open_.size() < 2 || (open_.size() < kMaxDepth && random(2) == 0);
    now_ns_ += random(100) == 0 ? 200 + random(2000) : 8 + random(40);
    atf::IndexEventV2 event{};
    event.timestamp_ns = now_ns_;
    event.detail_seq = atf::kNoDetail;
    if (calls) {
      const uint32_t caller = open_.empty() ? 0 : open_.back();
      open_.push_back((caller * 7 + 1 + random(4)) % kFunctions);
      event.event_kind = static_cast<uint8_t>(atf::EventKind::kCall);
      event.function_id = 0x1000 + open_.back() * 176;
    } else {
      event.event_kind = static_cast<uint8_t>(atf::EventKind::kReturn);
      event.function_id = 0x1000 + open_.back() * 176;
      open_.pop_back();
    }
    return event;
  }

  uint64_t state_ = 20261126;
  uint64_t now_ns_ = 1000;
  std::vector<uint32_t> open_;
};

// Answers clock probes and says that it lives, until the recording is sealed.
void serve_control(e2e::RawConnection& control, bool* sealed) {
  double last_sign = wall_seconds();
  while (const std::optional<e2e::ReceivedFrame> frame = control.receive()) {
    if (frame->type == wire::FrameType::kClockProbe) {
      wire::ClockProbe probe;
      probe.ParseFromString(frame->body);
      wire::ClockReply reply;
      reply.set_burst(probe.burst());
      reply.set_number(probe.number());
      reply.set_t1_ns(probe.t1_ns());
      reply.set_t2_ns(probe.t1_ns());
      reply.set_t3_ns(probe.t1_ns());
      control.send(wire::FrameType::kClockReply, reply);
    } else if (frame->type == wire::FrameType::kAck) {
      wire::Ack ack;
      ack.ParseFromString(frame->body);
      if (ack.recording_ended() == 1) {
        *sealed = true;
        control.send(wire::FrameType::kBye, wire::Bye());
        return;
      }
    } else if (frame->type == wire::FrameType::kRefuse) {
      return;
    }
    if (wall_seconds() - last_sign > 0.5) {
      last_sign = wall_seconds();
      control.send(wire::FrameType::kHeartbeat, wire::Heartbeat());
    }
  }
}

}  // namespace

PreparedPages prepare_pages(uint64_t bytes, Codec codec) {
  PreparedPages pages;
  constexpr uint64_t kPageBytes = uint64_t{kEventsPerPage} * 32;
  const uint64_t count = bytes / kPageBytes;
  pages.bytes.reserve(codec == Codec::kRaw ? count * (kPageBytes + wire::kPagePrefixBytes) : 0);
  ImaginedProgram program;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t first = i * kEventsPerPage;
    const e2e::Octets records = program.run(kEventsPerPage);
    const e2e::Octets page = codec == Codec::kRaw
                                 ? e2e::page_bytes(1, first, records)
                                 : e2e::encoded_page_bytes(1, first, records, codec);
    pages.bytes.insert(pages.bytes.end(), page.begin(), page.end());
  }
  pages.end_ns = program.now_ns();
  pages.record_count = count * kEventsPerPage;
  pages.stored_bytes = count * kPageBytes;
  return pages;
}

bool feed_collector(uint16_t port, uint32_t pid, const PreparedPages& pages) {
  e2e::RawAgent agent(port, pid);
  if (!agent.ready) return false;
  bool sealed = false;
  std::thread control([&agent, &sealed] { serve_control(agent.control, &sealed); });
  wire::StreamClose close;
  close.set_stream_id(1);
  close.set_end_ns(pages.end_ns);
  close.set_index_count(pages.record_count);
  wire::RecordingEnd end;
  end.set_recording(1);
  end.set_end_ns(pages.end_ns);
  end.set_reason("exit");
  const bool sent = agent.data.send(pages.bytes) &&
                    agent.data.send(wire::FrameType::kStreamClose, close) &&
                    agent.data.send(wire::FrameType::kRecordingEnd, end);
  control.join();
  return sent && sealed;
}

void feed_sink(uint16_t port, const PreparedPages& pages) {
  e2e::RawConnection connection(port);
  connection.send(pages.bytes);
}

BareSink::BareSink(const std::string& path) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(listener_, 1) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    std::perror("the bare sink has no port");
    std::exit(1);
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this, path] { receive(path); });
}

BareSink::~BareSink() {
  if (thread_.joinable()) thread_.join();
  close(listener_);
}

double BareSink::finish() {
  thread_.join();
  return cpu_seconds_;
}

void BareSink::receive(const std::string& path) {
  const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  std::vector<char> buffer(kSinkRead);
  const double begin = thread_cpu_seconds();
  for (;;) {
    const ssize_t bytes = read(connection, buffer.data(), buffer.size());
    if (bytes <= 0) break;
    if (write(file, buffer.data(), static_cast<size_t>(bytes)) != bytes) {
      std::perror("the bare sink cannot write");
      std::exit(1);
    }
  }
  cpu_seconds_ = thread_cpu_seconds() - begin;
  close(file);
  close(connection);
}

}  // namespace collect::bench
