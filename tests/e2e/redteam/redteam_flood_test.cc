// One user who wants as much as there is: threads, recordings, watches. It is refused at its share,
// and an agent of someone else loses nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/e2e/redteam/raw_http2.h"
#include "tests/e2e/witness.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

using testing::HasSubstr;

constexpr uint32_t kAttacker = 4'800'000;  // above the largest that Linux gives out
constexpr uint32_t kWitness = kAttacker + 100'000;
constexpr uint64_t kMiB = 1u << 20;
constexpr uint32_t kStreams = 16'384;  // threads_per_agent

class RedteamFlood : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  }
  void start(Arguments flags) {
    flags.insert(flags.end(), {"--local-access", "any", "--heartbeat-ms", "60000"});
    collector_ = std::make_unique<CollectorProcess>(scratch_, flags);
  }
  // Opens threads without end, as the other user; what it is refused with, and after how many.
  std::string flood_with_threads() {
    const uint16_t port = collector_->ingest_port();
    return fakes::as_other_user([port]() -> std::string {
      RawAgent agent(port, kAttacker);
      if (!agent.ready) return "not welcomed";
      // Beyond threads_per_agent it would be refused for that.
      for (uint32_t stream = 2; stream <= kStreams; ++stream) {
        if (!open_stream(agent.data, 1, stream)) break;
      }
      const auto refusal = agent.control.refusal();
      if (!refusal) return "not refused";
      return std::to_string(refusal->code()) + (refusal->retry() ? " retry " : " ") +
             refusal->reason();
    });
  }
  size_t files_below_root() const {
    const std::filesystem::recursive_directory_iterator all(collector_->root());
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  const Scratch scratch_;
  std::unique_ptr<CollectorProcess> collector_;
};

const std::string kLimitRetry = std::to_string(wire::REFUSE_LIMIT) + " retry ";

// Seen: 3.8 MB of thread starts made 49,000 files.
TEST_F(RedteamFlood, ThreadsMakeNoMoreFilesThanTheirShare) {
  constexpr uint64_t kFiles = 4'000;
  start({"--max-unsealed-files", std::to_string(kFiles)});
  Witness before(*collector_, kWitness);
  const std::string refused = flood_with_threads();
  EXPECT_THAT(refused, HasSubstr(kLimitRetry));
  EXPECT_THAT(refused, HasSubstr("files of unsealed sessions: uid 65534 has"));
  EXPECT_THAT(refused, HasSubstr("(max_unsealed_files)"));
  EXPECT_LE(files_below_root(), kFiles);
  // What the flood has is still its own: its session waits for it to come back.
  Witness after(*collector_, kWitness + 1);
  before.expect_whole();
  after.expect_whole();
}

// Seen: the same took 85 MB of memory.
TEST_F(RedteamFlood, ThreadsTakeNoMoreMemoryThanTheirShare) {
  constexpr uint64_t kMemory = 16 * kMiB;
  start({"--max-memory-bytes", std::to_string(kMemory)});
  Witness before(*collector_, kWitness);
  const uint64_t resident = collector_->process().resident_bytes();
  const std::string refused = flood_with_threads();
  EXPECT_THAT(refused, HasSubstr(kLimitRetry));
  EXPECT_THAT(refused, HasSubstr("(max_memory_bytes)"));
  const uint64_t now = collector_->process().resident_bytes();
  RecordProperty("grown_kib", static_cast<int>((now - std::min(now, resident)) >> 10));
  EXPECT_LT(now, resident + 2 * kMemory);
  Witness after(*collector_, kWitness + 1);
  before.expect_whole();
  after.expect_whole();
}

TEST_F(RedteamFlood, RecordingsAreNoMoreThanTheirShare) {
  constexpr uint32_t kSessions = 16;
  start({"--max-unsealed-sessions", std::to_string(kSessions)});
  Witness before(*collector_, kWitness);
  const uint16_t port = collector_->ingest_port();
  const std::string refused = fakes::as_other_user([port] {
    std::vector<std::unique_ptr<RawAgent>> agents;
    for (uint32_t at = 0; at < 2 * kSessions; ++at) {
      agents.push_back(std::make_unique<RawAgent>(port, kAttacker + at));
      RawAgent& agent = *agents.back();
      if (!agent.ready || !agent.data.send(page_bytes(1, 0, events(1000, 10)))) break;
      if (agent.control.receive_ack(1, 10)) continue;
      // The ack did not come: the next that tries to record gets the same refusal, and why.
      RawAgent again(port, kAttacker + 2 * kSessions);
      const auto refusal = again.control.refusal();
      return std::to_string(at) + " " + (refusal ? refusal->reason() : "not refused");
    }
    return std::string("not refused");
  });
  EXPECT_THAT(refused, HasSubstr("too many unsealed sessions: uid 65534 has"));
  EXPECT_THAT(refused, HasSubstr("(max_unsealed_sessions)"));
  EXPECT_LT(session_directories(collector_->root()).size(), kSessions);
  Witness after(*collector_, kWitness + 1);
  before.expect_whole();
  after.expect_whole();
}

// ---- watches that no one reads

// The processor time that the threads of this name have taken.
uint64_t cpu_ns_of_threads(pid_t pid, const std::string& name) {
  uint64_t sum = 0;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::string comm;
    std::ifstream(task.path() / "comm") >> comm;
    uint64_t ran_ns = 0;
    if (comm == name) std::ifstream(task.path() / "schedstat") >> ran_ns;
    sum += ran_ns;
  }
  return sum;
}

// What the io threads spend while so many agents come, record and go.
uint64_t cost_of_agents(CollectorProcess& collector, uint32_t first_pid, uint32_t count) {
  const uint64_t before = cpu_ns_of_threads(collector.process().pid(), "ingest");
  for (uint32_t at = 0; at < count; ++at) {
    RawAgent agent(collector.ingest_port(), first_pid + at);
    EXPECT_TRUE(agent.ready && agent.data.send(page_bytes(1, 0, events(1000, 10))) &&
                agent.control.receive_ack(1, 10) && close_stream(agent.data, 1, 10) &&
                end_recording(agent.data, 1));
    EXPECT_EQ(sealed_sessions(collector.root(), static_cast<int>(first_pid + at)).size(), 1u);
  }
  return cpu_ns_of_threads(collector.process().pid(), "ingest") - before;
}

// Calls of WatchAgents on one connection, of which the client takes nothing but headers.
RawHttp2 unread_watches(uint16_t port, uint32_t count) {
  RawHttp2 client(port);
  // SETTINGS: the windows of streams are closed.
  std::string bytes = http2::greeting() + http2::frame(4, 0, 0, std::string("\0\4\0\0\0\0", 6));
  for (uint32_t at = 0; at < count; ++at) {
    const uint32_t stream = 2 * at + 1;
    bytes += http2::call(stream, "/collect.control.v1.Collector/WatchAgents") +
             http2::frame(0, 1, stream, std::string(5, '\0'));
  }
  EXPECT_TRUE(client.send(bytes));
  return client;
}

// Whether each call has been answered with headers: its watch has begun.
bool all_answered(RawHttp2& client, uint32_t count) {
  return eventually(seconds(60), [&] {
    (void)client.send(http2::frame(6, 1, 0, "12345678"));  // reads what has come
    const std::string& received = client.received();
    uint32_t headers = 0;
    for (size_t at = 0; at + 9 <= received.size();) {
      const auto byte = [&](size_t i) { return static_cast<uint8_t>(received[at + i]); };
      headers += byte(3) == 1 ? 1 : 0;
      at += 9 + (size_t{byte(0)} << 16 | size_t{byte(1)} << 8 | byte(2));
    }
    return headers >= count;
  });
}

// Seen: with a thousand watches that no one read, an innocent agent waited 3 s to connect, because
// the thread that reported a change wrote it down for each watch.
TEST(RedteamWatches, ThousandUnreadWatchesCostAgentsNothing) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000", "--symbolize", "false"});
  Witness witness(collector, kWitness);  // each watch has something to say
  constexpr uint32_t kAgents = 30;
  const uint64_t usual = cost_of_agents(collector, kAttacker, kAgents);
  const uint64_t resident = collector.process().resident_bytes();
  std::vector<RawHttp2> clients;
  constexpr uint32_t kCalls = 200;
  for (int at = 0; at < 5; ++at) {
    clients.push_back(unread_watches(collector.control_port(), kCalls));
    ASSERT_TRUE(all_answered(clients.back(), kCalls));
  }
  const uint64_t watched = cost_of_agents(collector, kAttacker + kAgents, kAgents);
  RecordProperty("usual_us", static_cast<int>(usual / 1000));
  RecordProperty("watched_us", static_cast<int>(watched / 1000));
  const uint64_t now = collector.process().resident_bytes();
  RecordProperty("grown_kib", static_cast<int>((now - std::min(now, resident)) >> 10));
  EXPECT_LT(watched, 5 * usual);
  EXPECT_LT(now, resident + 200 * kMiB);
  EXPECT_TRUE(collector.ctl({"agents"}).exited_with(0));
  witness.expect_whole();
}

}  // namespace
}  // namespace collect::e2e
