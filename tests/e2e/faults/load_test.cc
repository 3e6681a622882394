// Many agents at once: each with both of its channels, four threads, and a recording that continues
// until all the others have one too. COLLECT_LOAD_AGENTS (default 1000) says how many.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kFirstPid = 4'400'000;  // above the largest that Linux gives out
constexpr uint32_t kThreads = 4;
constexpr uint32_t kEvents = 500;  // of each thread in each round
constexpr uint32_t kRounds = 3;

uint32_t agents_wanted() {
  const char* value = std::getenv("COLLECT_LOAD_AGENTS");
  return value != nullptr ? static_cast<uint32_t>(std::atoi(value)) : 1000;
}

// Two connections for each agent, and what the test itself needs.
bool may_open_connections_of(uint32_t agents) {
  const rlim_t needed = uint64_t{agents} * 2 + 100;
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_max = std::max(limit.rlim_max, needed);  // root may
  limit.rlim_cur = limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

void end_recording(RawAgent& agent) {
  for (uint32_t stream = 1; stream <= kThreads; ++stream) {
    wire::StreamClose close;
    close.set_stream_id(stream);
    close.set_index_count(kEvents * kRounds);
    EXPECT_TRUE(agent.data.send(wire::FrameType::kStreamClose, close));
  }
  wire::RecordingEnd end;
  end.set_recording(1);
  EXPECT_TRUE(agent.data.send(wire::FrameType::kRecordingEnd, end));
}

TEST(Load, ThousandAgentsRecordAtOnce) {
  const uint32_t count = agents_wanted();
  if (!may_open_connections_of(count)) {
    GTEST_SKIP() << "the limit of open files is too low for " << count << " agents (ulimit -n)";
  }
  Scratch scratch;
  // One user may have three times what is left.
  const uint32_t connections = 2 * count * 4 / 3;
  CollectorProcess collector(
      scratch, {"--heartbeat-ms", "60000", "--max-connections", std::to_string(connections),
                "--rtc", "false", "--log-level", "warn"});
  const uint64_t idle = collector.process().resident_bytes();
  std::vector<std::unique_ptr<RawAgent>> agents;
  for (uint32_t i = 0; i < count; ++i) {
    agents.push_back(std::make_unique<RawAgent>(collector.ingest_port(), kFirstPid + i));
    ASSERT_TRUE(agents.back()->ready) << "agent " << i;
    for (uint32_t stream = 2; stream <= kThreads; ++stream) {
      wire::StreamOpen open;
      open.set_recording(1);
      open.set_stream_id(stream);
      open.set_thread_id(stream);
      ASSERT_TRUE(agents.back()->data.send(wire::FrameType::kStreamOpen, open));
    }
  }
  for (uint32_t round = 0; round < kRounds; ++round) {
    const uint64_t first = uint64_t{round} * kEvents;
    for (const auto& agent : agents) {
      for (uint32_t stream = 1; stream <= kThreads; ++stream) {
        ASSERT_TRUE(agent->data.send(page_bytes(stream, first, events(1000 + first, kEvents))));
      }
    }
  }
  // The pages of the last stream came last, so that its ack is for all of them.
  for (const auto& agent : agents) {
    ASSERT_TRUE(agent->control.receive_ack(kThreads, kEvents * kRounds));
  }
  const uint64_t loaded = collector.process().resident_bytes();
  RawConnection one_more(collector.ingest_port());
  one_more.send(wire::FrameType::kHello,
                hello(wire::CHANNEL_CONTROL, kFirstPid + count, std::string(16, 'x')));
  const std::optional<wire::Refuse> refusal = one_more.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_NE(refusal->reason().find("max_connections"), std::string::npos) << refusal->reason();
  const Ending listed = collector.ctl({"collectors"});
  EXPECT_NE(listed.output.find("sessions recording"), std::string::npos) << listed.output;
  for (const auto& agent : agents) end_recording(*agent);
  uint64_t complete = 0;
  ASSERT_TRUE(eventually(seconds(120), [&] {
    complete = 0;
    for (const std::string& directory : session_directories(collector.root())) {
      const RecordedSession session(directory);
      if (session.state() != "complete") return false;
      EXPECT_EQ(session.totals().events, uint64_t{kThreads} * kEvents * kRounds) << directory;
      ++complete;
    }
    return complete == count;
  })) << complete;
  std::printf("%u agents with %u threads each: %llu KiB of memory for each while they record\n",
              count, kThreads, static_cast<unsigned long long>((loaded - idle) / 1024 / count));
}

}  // namespace
}  // namespace collect::e2e
