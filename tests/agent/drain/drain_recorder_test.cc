// The whole agent, real rings and real drain thread, against a scripted collector.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "agent/drain/drain.h"
#include "collect/agent.h"
#include "formats/atf/layout.h"
#include "formats/core/bytes.h"
#include "tests/agent/scripted_collector.h"
#include "tests/agent/temp_folder.h"

namespace collect::agent {
namespace {

using wire::FrameType;

constexpr uint32_t kThreads = 4;
constexpr uint64_t kPairs = 200000;
constexpr uint32_t kSilentMs = 60000;  // a script that takes data says nothing meanwhile

void called_function() {}

// Calls and returns, with call sites that count up, so that a record tells its place.
void make_events(uint64_t pairs) {
  const auto* function = reinterpret_cast<const void*>(&called_function);
  for (uint64_t i = 0; i < pairs; ++i) {
    collect_enter(function, function);
    collect_exit(function, function);
  }
}

class AgentTest : public testing::Test {
 protected:
  // One with a spool listens: its collector comes when it comes.
  void start(uint32_t full_policy, uint32_t buffer_mb, uint32_t spool_mb = 0) {
    address = collector.address();
    collect_agent_options options{};
    options.struct_bytes = sizeof options;
    (spool_mb == 0 ? options.connect : options.listen) = spool_mb == 0 ? address.c_str() : "tcp:0";
    options.full_policy = full_policy;
    options.buffer_mb = buffer_mb;
    const std::string folder = folder_.path();
    if (spool_mb != 0) options.spool = folder.c_str();
    options.spool_mb = spool_mb;
    // One process keeps to one kind of memory, so the test program runs once with each.
    const char* drain = std::getenv("TEST_DRAIN");
    if (drain != nullptr && std::string(drain) == "process") options.drain = COLLECT_DRAIN_PROCESS;
    ASSERT_EQ(collect_agent_start(&options), 0) << collect_agent_status();
  }
  static uint16_t listen_port() {
    while (drain_listen_port() == 0) std::this_thread::yield();
    return drain_listen_port();
  }
  void TearDown() override {
    collector.control.close();
    collector.data.close();
    collect_agent_stop(0);
  }

  // Every record of every stream: alternately call and return, times that never run backwards.
  void expect_whole_streams() {
    for (const auto& [stream_id, end] : collector.closed) {
      const StoredLane& stored = collector.lane(stream_id, 0);
      EXPECT_EQ(stored.repeats, 0u);
      EXPECT_EQ(stored.next, end.index_count());
      EXPECT_EQ(stored.lost_total, end.index_lost());
      ASSERT_EQ(stored.bytes.size(), (stored.next - stored.jumps) * atf::kEventBytes);
      uint64_t last_ns = 0;
      uint32_t wrong = 0;
      for (size_t at = 0; at < stored.bytes.size(); at += atf::kEventBytes) {
        const auto event = load_le<atf::IndexEventV2>(stored.bytes.data() + at);
        if (event.timestamp_ns < last_ns) ++wrong;
        last_ns = event.timestamp_ns;
        const bool is_call = (at / atf::kEventBytes) % 2 == 0;
        if (stored.lost_total == 0 && stored.jumps == 0 && event.event_kind != (is_call ? 1 : 2)) {
          ++wrong;
        }
      }
      EXPECT_EQ(wrong, 0u) << "stream " << stream_id;
    }
  }

  ScriptedCollector collector;
  std::string address;

 private:
  TempFolder folder_;
};

TEST_F(AgentTest, ReconnectsWithoutLossOrRepetition) {
  start(COLLECT_FULL_WAIT, 4);
  std::thread program([] {
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([] { make_events(kPairs); });
    for (std::thread& thread : threads) thread.join();
    collect_agent_stop(60000);
  });
  collector.welcome_pair();
  // The rings hold far less than is recorded: acks must free them all along.
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(collector.take());
    if (i % 8 == 0) collector.send_ack();
  }
  collector.data.swallow(100000);
  collector.data.close();
  collector.control.close();
  collector.welcome_pair(true);
  for (auto frame = collector.take(); frame && frame->type != FrameType::kRecordingEnd;
       frame = collector.take()) {
    if (frame->type == FrameType::kPage || frame->type == FrameType::kStreamClose) {
      collector.send_ack();
    }
  }
  wire::Ack sealed = collector.ack();
  sealed.set_recording_ended(1);
  collector.control.send(FrameType::kAck, sealed);
  program.join();
  ASSERT_EQ(collector.closed.size(), kThreads);
  for (const auto& [stream_id, end] : collector.closed) {
    EXPECT_EQ(end.index_count(), 2 * kPairs);
    EXPECT_EQ(end.index_lost(), 0u);
    EXPECT_EQ(collector.lane(stream_id, 0).jumps, 0u);
  }
  expect_whole_streams();
  EXPECT_FALSE(collector.modules.empty());
}

TEST_F(AgentTest, StoresEveryEventOrReportsItLost) {
  start(COLLECT_FULL_DROP, 1);
  std::thread program([] {
    make_events(kPairs);
    collect_agent_stop(60000);
  });
  collector.welcome_pair();
  collector.seal();
  program.join();
  ASSERT_EQ(collector.closed.size(), 1u);
  const auto& [stream_id, end] = *collector.closed.begin();
  EXPECT_EQ(end.index_count() + end.index_lost(), 2 * kPairs);
  EXPECT_EQ(collector.lane(stream_id, 0).jumps, 0u);
  EXPECT_GT(end.index_lost(), 0u) << "a megabyte can't hold all of it while no one acknowledges";
  expect_whole_streams();
}

TEST_F(AgentTest, NewestSurviveWhenTheOldestAreOverwritten) {
  start(COLLECT_FULL_OVERWRITE, 1);
  // No one takes anything yet.
  make_events(kPairs);
  std::thread stopping([] { collect_agent_stop(60000); });
  collector.welcome_pair();
  collector.seal();
  stopping.join();
  ASSERT_EQ(collector.closed.size(), 1u);
  const auto& [stream_id, end] = *collector.closed.begin();
  const StoredLane& stored = collector.lane(stream_id, 0);
  EXPECT_EQ(end.index_count() + end.index_lost(), 2 * kPairs);
  EXPECT_GT(stored.jumps, 0u);
  EXPECT_EQ(stored.bytes.size() / atf::kEventBytes + stored.jumps + stored.lost_total, 2 * kPairs);
  expect_whole_streams();
}

// Many times what the rings hold: without a spool, threads that wait would wait for a collector.
TEST_F(AgentTest, SpoolTakesWhatTheRingsDoNotHold) {
  start(COLLECT_FULL_WAIT, 1, 64);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) threads.emplace_back([] { make_events(kPairs); });
  for (std::thread& thread : threads) thread.join();
  collector.dial_pair(listen_port(), false, kSilentMs);
  std::thread stopping([] { collect_agent_stop(60000); });
  collector.seal();
  stopping.join();
  ASSERT_EQ(collector.closed.size(), kThreads);
  for (const auto& [stream_id, end] : collector.closed) {
    EXPECT_EQ(end.index_count(), 2 * kPairs);
    EXPECT_EQ(end.index_lost(), 0u);
    EXPECT_EQ(collector.lane(stream_id, 0).jumps, 0u);
  }
  expect_whole_streams();
}

TEST_F(AgentTest, SpoolThatIsTooSmallLosesNothingUncounted) {
  start(COLLECT_FULL_DROP, 1, 1);
  collector.features = wire::kFeatureColumns;
  make_events(10 * kPairs);
  collector.dial_pair(listen_port(), false, kSilentMs);
  std::thread stopping([] { collect_agent_stop(60000); });
  collector.seal();
  stopping.join();
  ASSERT_EQ(collector.closed.size(), 1u);
  const auto& [stream_id, end] = *collector.closed.begin();
  EXPECT_EQ(end.index_count() + end.index_lost(), 20 * kPairs);
  EXPECT_GT(end.index_lost(), 0u);
  EXPECT_GT(collector.encoded_pages, 0u);
  EXPECT_EQ(collector.lane(stream_id, 0).jumps, 0u);
  expect_whole_streams();
}

}  // namespace
}  // namespace collect::agent
