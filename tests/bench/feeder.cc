#include "tests/bench/feeder.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "proto/wire/frame_encoder.h"
#include "tests/bench/cpu_time.h"

namespace collect::bench {
namespace {

constexpr uint32_t kEventsPerPage = 2048;  // 64 KiB, as the agent's pages
constexpr size_t kSinkRead = 256 * 1024;

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

PreparedPages prepare_pages(uint64_t bytes) {
  PreparedPages pages;
  constexpr uint64_t kPageBytes = uint64_t{kEventsPerPage} * 32;
  const uint64_t count = bytes / kPageBytes;
  pages.bytes.reserve(count * (kPageBytes + wire::kPagePrefixBytes));
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t first = i * kEventsPerPage;
    const e2e::Octets page = e2e::page_bytes(1, first, e2e::events(1000 + first, kEventsPerPage));
    pages.bytes.insert(pages.bytes.end(), page.begin(), page.end());
  }
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
  close.set_end_ns(1000 + pages.record_count);
  close.set_index_count(pages.record_count);
  wire::RecordingEnd end;
  end.set_recording(1);
  end.set_end_ns(1000 + pages.record_count);
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
