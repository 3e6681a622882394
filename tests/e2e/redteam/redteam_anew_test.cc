// Attacks of a second round: descriptors, limits and signals that a process is started with, an adb
// server whose phones come and go, and peers that are nearly right.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kPid = 4'600'000;  // above the largest that Linux gives out
constexpr uint32_t kEvents = 100;

const Arguments kWithoutStreams = {"sh", "-c", "exec \"$@\" 0<&- 1>&- 2>&-", "sh"};

std::string descriptor_of(pid_t pid, int fd) {
  std::error_code error;
  const auto target = std::filesystem::read_symlink(
      "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd), error);
  return error ? "closed" : target.string();
}

size_t descriptors_of(pid_t pid) {
  size_t count = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", error)) {
    count += entry.exists(error) || entry.is_symlink(error) ? 1 : 0;
  }
  return count;
}

// Seen: with descriptor 2 closed the log's lines went into an eventfd, and what is opened next
// might be a file of a session.
TEST(RedteamAnew, DaemonWithoutStandardStreamsPrintsIntoNothing) {
  Scratch scratch;
  CollectorProcess collector(scratch, {}, "", kWithoutStreams);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // A library may have taken the first free number before main().
    const std::string what = descriptor_of(collector.process().pid(), fd);
    EXPECT_TRUE(what == "/" || (fd == STDIN_FILENO && what == "anon_inode:[eventfd]"))
        << fd << ": " << what;
  }
}

// Seen: the log of the daemon that `run` starts was descriptor 1 or 2 itself, and lost at exec.
TEST(RedteamAnew, RunWithoutStandardStreamsRecordsAndKeepsItsLog) {
  Scratch scratch;
  const std::string root = scratch / "root";
  Arguments command = kWithoutStreams;
  command.insert(command.end(),
                 {program("collectctl"), "run", "-o", root, "--", "sh", "-c", "exit 7"});
  const Ending ending = run(scratch.path(), command);
  EXPECT_TRUE(ending.exited_with(7)) << ending.describe();
  EXPECT_NE(read_text_file(root + "/collectord.log").find("is ready"), std::string::npos);
}

// Seen: signal 25 ended the daemon, and with it every recording.
TEST(RedteamAnew, FileSizeLimitFailsASessionNotTheDaemon) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--rtc", "false"}, "",
                             {"prlimit", "--fsize=4194304:4194304"});
  RawAgent big(collector.ingest_port(), kPid);
  RawAgent small(collector.ingest_port(), kPid + 1);
  ASSERT_TRUE(big.ready && small.ready);
  constexpr uint32_t kPageEvents = 32'768;  // 1 MiB
  for (uint64_t page = 0; page < 6; ++page) {
    (void)big.data.send(
        page_bytes(1, page * kPageEvents, events(1000 + page * kPageEvents, kPageEvents)));
  }
  const auto refusal = big.control.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code(), wire::REFUSE_STORAGE) << refusal->reason();
  ASSERT_TRUE(small.data.send(page_bytes(1, 0, events(1000, kEvents))));
  ASSERT_TRUE(close_stream(small.data, 1, kEvents) && end_recording(small.data, 1));
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid + 1));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete");
  EXPECT_EQ(sessions[0].totals().events, kEvents);
}

TEST(RedteamAnew, SignalsInStormsLoseNothing) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--seal-at-stop", "true"});
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  for (int at = 0; at < 200; ++at) {
    for (const int number : {SIGHUP, SIGPIPE, SIGCHLD, SIGCONT, SIGXFSZ, SIGWINCH, SIGURG}) {
      collector.process().send_signal(number);
    }
  }
  collector.process().send_signal(SIGSTOP);
  ASSERT_TRUE(agent.data.send(page_bytes(1, 0, events(1000, kEvents))));
  collector.process().send_signal(SIGCONT);
  EXPECT_TRUE(agent.control.receive_ack(1, kEvents));
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGTERM}) {
    collector.process().send_signal(number);
  }
  EXPECT_TRUE(collector.stop().exited_with(0)) << collector.stop().describe();
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].totals().events, kEvents);
}

// More half handshakes than may be undecided, each stopped at the challenge.
TEST(RedteamAnew, HalfHandshakesDoNotBlockAnAgent) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = limit.rlim_max;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const size_t count = std::min<size_t>(2'000, limit.rlim_max / 2);
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000"});
  RawAgent before(collector.ingest_port(), kPid);
  ASSERT_TRUE(before.ready);
  std::vector<RawConnection> halves;
  for (size_t at = 0; at < count; ++at) {
    halves.emplace_back(collector.ingest_port());
    // Of as many processes; every other one names that of `before`, and never proves it.
    std::string id =
        at % 2 == 0 ? before.process_id : "half" + std::to_string(100'000'000'000 + at);
    id.resize(16, 'x');
    halves.back().send(wire::FrameType::kHello,
                       hello(at % 3 == 0 ? wire::CHANNEL_DATA : wire::CHANNEL_CONTROL,
                             kPid + static_cast<uint32_t>(at % 2), id));
  }
  RawAgent after(collector.ingest_port(), kPid + 1);
  ASSERT_TRUE(after.ready);
  for (RawAgent* agent : {&before, &after}) {
    ASSERT_TRUE(agent->data.send(page_bytes(1, 0, events(1000, kEvents))));
    EXPECT_TRUE(agent->control.receive_ack(1, kEvents));
  }
}

// Nothing here is forbidden by a checksum or a length, and all of it is a lie.
class NearlyRight {
 public:
  explicit NearlyRight(RawAgent& agent) : agent_(agent) {}

  // Every fourth answer is of the far future, of time zero, backwards, and of another burst.
  void lie_about_the_time(uint32_t probes) {
    for (uint32_t at = 0; at < probes;) {
      const auto frame = agent_.control.receive();
      ASSERT_TRUE(frame);
      wire::ClockProbe probe;
      if (frame->type != wire::FrameType::kClockProbe || !probe.ParseFromString(frame->body)) {
        continue;
      }
      wire::ClockReply reply;
      reply.set_burst(at % 4 == 3 ? ~0u : probe.burst());
      reply.set_number(probe.number());
      reply.set_t1_ns(at % 4 == 2 ? 0 : probe.t1_ns());
      reply.set_t2_ns(at % 4 == 1 ? 0 : ~uint64_t{0});
      reply.set_t3_ns(at % 4 == 2 ? 1 : ~uint64_t{0} - at);
      if (!agent_.control.send(wire::FrameType::kClockReply, reply)) return;
      ++at;
      if (at % 4 == 0) return;  // the burst waits for an answer that is not its own
    }
  }

  void send_modules() {
    wire::Modules modules;
    for (uint32_t id = 0; id < 16; ++id) {
      wire::Module& module = *modules.add_modules();
      module.set_module_id(id % 8 == 7 ? ~0u : id);
      module.set_path("/nowhere/" + std::to_string(id));
      module.set_base_address(id % 2 == 0 ? 0x1000 : ~uint64_t{0} - id);
      module.set_size(id % 3 == 0 ? ~uint64_t{0} : 0x10000);
      module.set_loaded_ns(~uint64_t{0});
      module.set_unloaded_ns(1);
    }
    ASSERT_TRUE(agent_.data.send(wire::FrameType::kModules, modules));
  }

  // The name is 15 combining marks, and one byte more than they need.
  void send_stream(uint32_t id) {
    wire::StreamOpen open;
    open.set_recording(1);
    open.set_stream_id(id);
    open.set_thread_id(~0u);
    std::string name = "a";
    for (int mark = 0; mark < 15; ++mark) name += "\xCC\x81";
    open.set_thread_name(name);
    open.set_start_ns(~uint64_t{0});
    ASSERT_TRUE(agent_.data.send(wire::FrameType::kStreamOpen, open));
    // Forward links to details that never come, and times that go back.
    Octets records = events(~uint64_t{0} - kEvents, kEvents);
    for (uint32_t at = 0; at < kEvents; ++at) {
      const uint32_t link = at % 2 == 0 ? kEvents - at : 0;
      std::memcpy(records.data() + size_t{at} * 32 + 16, &link, sizeof link);
    }
    ASSERT_TRUE(agent_.data.send(page_bytes(id, ~uint64_t{0} - 2 * kEvents, records)));
    wire::StreamClose close;
    close.set_stream_id(id);
    close.set_index_count(~uint64_t{0} - kEvents);
    close.set_index_lost(~uint64_t{0});
    ASSERT_TRUE(agent_.data.send(wire::FrameType::kStreamClose, close));
  }

 private:
  RawAgent& agent_;
};

TEST(RedteamAnew, NearlyRightPeersHarmTheirOwnSessionAtMost) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--resume-ms", "500"});
  std::optional<RawAgent> witness;
  uint32_t pid = kPid;
  for (const uint32_t stream : {0u, 2u, ~0u - 1, ~0u}) {
    RawAgent agent(collector.ingest_port(), ++pid);
    ASSERT_TRUE(agent.ready);
    NearlyRight peer(agent);
    peer.lie_about_the_time(8);
    peer.send_modules();
    peer.send_stream(stream);
    wire::RecordingEnd end;
    end.set_recording(1);
    end.set_end_ns(stream);
    end.set_lost_without_stream(~uint64_t{0});
    (void)agent.data.send(wire::FrameType::kRecordingEnd, end);
    // A second welcome is not an agent's word.
    (void)agent.control.send(wire::FrameType::kWelcome, wire::Welcome());
    EXPECT_TRUE(agent.control.refusal());
  }
  witness.emplace(collector.ingest_port(), kPid);
  ASSERT_TRUE(witness->ready);
  ASSERT_TRUE(witness->data.send(page_bytes(1, 0, events(1000, kEvents))));
  ASSERT_TRUE(close_stream(witness->data, 1, kEvents) && end_recording(witness->data, 1));
  const auto kept = sealed_sessions(collector.root(), static_cast<int>(kPid));
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(kept[0].totals().events, kEvents);
  for (; pid > kPid; --pid) {
    for (const RecordedSession& session :
         sealed_sessions(collector.root(), static_cast<int>(pid))) {
      for (const char* command : {"verify", "report", "inspect", "dump"}) {
        const Ending read =
            run(scratch.path(), {program("collectctl"), command, session.directory()});
        EXPECT_TRUE(read.exited_with(0) || read.exited_with(1))
            << command << ": " << read.describe() << read.errors;
      }
    }
  }
}

// Seen: `run` asked another user's process at 127.0.0.1:7711 where to stream to.
TEST(RedteamAnew, RefusesAnotherUserAtTheDefaultPort) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can listen as another user";
  Scratch scratch;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(7711);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // The socket is of the user who made it.
  ASSERT_EQ(fchown(listener, fakes::kOtherUid, fakes::kOtherUid), 0);
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    close(listener);
    GTEST_SKIP() << "someone is at port 7711";
  }
  ASSERT_EQ(listen(listener, 16), 0);
  const Ending stats = run(scratch.path(), {program("collectctl"), "collectors"});
  EXPECT_TRUE(stats.exited_with(1)) << stats.describe();
  const Ending recorded =
      run(scratch.path(), {"sh", "-c", "cd \"$1\" && exec \"$2\" run -- sh -c 'exit 7'", "sh",
                           scratch.path(), program("collectctl")});
  EXPECT_TRUE(recorded.exited_with(7)) << recorded.describe() << recorded.errors;
  // `run` connects to see whose it is, and sends nothing.
  for (int fd = -1; (fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC)) >= 0; close(fd)) {
    char byte = 0;
    EXPECT_LE(recv(fd, &byte, 1, MSG_DONTWAIT), 0) << "something was said to the squatter";
  }
  close(listener);
}

// An adb server whose 250 phones come and go without a pause, and that answers nothing else.
class FlappingAdbServer {
 public:
  FlappingAdbServer() {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(listener_, 4096), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~FlappingAdbServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    {
      const std::lock_guard lock(mutex_);
      for (const int fd : accepted_) shutdown(fd, SHUT_RDWR);
    }
    thread_.join();
    for (std::thread& flood : floods_) flood.join();
    for (const int fd : accepted_) close(fd);
    close(listener_);
  }
  uint16_t port() const { return port_; }
  uint32_t lists() const { return lists_; }

 private:
  void serve() {
    while (!stopping_) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      {
        const std::lock_guard lock(mutex_);
        accepted_.push_back(fd);
      }
      // The first one is the tracker.
      if (floods_.empty()) floods_.emplace_back([this, fd] { flood(fd); });
    }
  }
  void flood(int fd) {
    std::string phones;
    for (int at = 0; at < 250; ++at) phones += "phone" + std::to_string(at) + " device usb:1\n";
    char length[5];
    std::snprintf(length, sizeof length, "%04zx", phones.size());
    const std::string both = length + phones + "0000";
    if (send(fd, "OKAY", 4, MSG_NOSIGNAL) != 4) return;
    while (!stopping_) {
      for (size_t sent = 0; sent < both.size();) {
        const ssize_t now = send(fd, both.data() + sent, both.size() - sent, MSG_NOSIGNAL);
        if (now <= 0) return;
        sent += static_cast<size_t>(now);
      }
      lists_ += 2;
    }
  }

  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<uint32_t> lists_{0};
  std::mutex mutex_;
  std::vector<int> accepted_;  // guarded by mutex_
  std::vector<std::thread> floods_;
  std::thread thread_;
};

// Seen: 3,000 descriptors within three seconds, and a quarter of a megabyte of log in each.
TEST(RedteamAnew, FlappingPhonesLeakNoDescriptorsOrLogLines) {
  Scratch scratch;
  FlappingAdbServer server;
  CollectorProcess collector(scratch, {"--adb", "127.0.0.1:" + std::to_string(server.port())});
  size_t most = 0;
  // Looked at for a while, however many lists the machine gets through meanwhile.
  (void)eventually(seconds(10), [&] {
    most = std::max(most, descriptors_of(collector.process().pid()));
    return most >= 700;
  });
  EXPECT_GT(server.lists(), 100u);
  EXPECT_LT(most, 700u);  // 512 to the adb server, and what the daemon has itself
  // 16 lists at once and two a second, 250 lines each; without the pace it is all of them.
  EXPECT_LT(collector.process().errors().size(), 8u << 20);
  EXPECT_TRUE(collector.ctl({"sessions"}).exited_with(0));
}

}  // namespace
}  // namespace collect::e2e
