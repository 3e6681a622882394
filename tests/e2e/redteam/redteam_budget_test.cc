// The daemon runs out of descriptors, by itself and because someone wants it to.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/raw_agent.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

constexpr uint32_t kPid = 4'500'000;  // above the largest that Linux gives out
constexpr uint32_t kEvents = 200;

void open_and_fill(RawAgent& agent, uint32_t stream) {
  ASSERT_TRUE(open_stream(agent.data, 1, stream));
  ASSERT_TRUE(agent.data.send(page_bytes(stream, 0, events(1000, kEvents))));
}

void end_recording(RawAgent& agent, uint32_t streams) {
  for (uint32_t stream = 1; stream <= streams; ++stream) {
    ASSERT_TRUE(close_stream(agent.data, stream, stream == 1 ? 0 : kEvents));
  }
  ASSERT_TRUE(end_recording(agent.data, 1));
}

// What the daemon may open from now on: `soft`, or as much as it may at all.
void limit_descriptors(pid_t pid, std::optional<rlim_t> soft) {
  rlimit limit{};
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
  limit.rlim_cur = soft.value_or(limit.rlim_max);
  ASSERT_EQ(prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
}

rlim_t highest_descriptor(pid_t pid) {
  rlim_t highest = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) {
    highest = std::max<rlim_t>(highest, std::stoul(entry.path().filename().string()));
  }
  return highest;
}

// Seen: the agent got a final refusal, as if its bytes were bad.
TEST(RedteamBudget, ShortageOfDescriptorsDoesNotDropAnAgent) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000"});
  const pid_t pid = collector.process().pid();
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  open_and_fill(agent, 2);
  ASSERT_TRUE(agent.control.receive_ack(2, kEvents));
  limit_descriptors(pid, highest_descriptor(pid) + 1);
  // Idle connections take what is left, until one is informed why it can't be taken.
  std::vector<RawConnection> idle;
  bool is_refused = false;
  for (int at = 0; at < 64 && !is_refused; ++at) {
    idle.emplace_back(collector.ingest_port());
    // The listener accepts in order, so one that was taken is known by the hello that it answers.
    const std::string id(16, static_cast<char>(at + 1));
    const bool sent =
        idle.back().send(wire::FrameType::kHello, hello(wire::CHANNEL_CONTROL, kPid + 100, id));
    const auto answer = idle.back().receive();
    if (!sent || !answer || answer->type != wire::FrameType::kRefuse) continue;
    wire::Refuse refusal;
    ASSERT_TRUE(refusal.ParseFromString(answer->body));
    EXPECT_EQ(refusal.code(), wire::REFUSE_RESOURCES) << refusal.reason();
    EXPECT_TRUE(refusal.retry());
    is_refused = true;
  }
  EXPECT_TRUE(is_refused);
  constexpr uint32_t kThreads = 40;
  for (uint32_t stream = 3; stream <= kThreads; ++stream) open_and_fill(agent, stream);
  end_recording(agent, kThreads);
  EXPECT_TRUE(collector.process().running());
  limit_descriptors(pid, std::nullopt);
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete") << sessions[0].manifest()["reason"];
  EXPECT_EQ(sessions[0].totals().events, uint64_t{kThreads - 1} * kEvents);
  EXPECT_EQ(sessions[0].totals().lost, 0u);
}

// A session has more threads than the daemon has descriptors.
TEST(RedteamBudget, SmallLimitOfDescriptorsIsEnoughForManyThreads) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000"}, "",
                             {"prlimit", "--nofile=256:256"});
  RawAgent agent(collector.ingest_port(), kPid);
  ASSERT_TRUE(agent.ready);
  constexpr uint32_t kThreads = 600;
  for (uint32_t stream = 2; stream <= kThreads; ++stream) open_and_fill(agent, stream);
  ASSERT_TRUE(agent.control.receive_ack(kThreads, kEvents));
  EXPECT_LT(highest_descriptor(collector.process().pid()), 255u);
  end_recording(agent, kThreads);
  const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid));
  ASSERT_EQ(sessions.size(), 1u);
  EXPECT_EQ(sessions[0].state(), "complete") << sessions[0].manifest()["reason"];
  EXPECT_EQ(sessions[0].totals().events, uint64_t{kThreads - 1} * kEvents);
}

// Many sessions, and each would keep hundreds of files open if it could: those whose agent has gone
// keep none, and those that record share what there is.
TEST(RedteamBudget, SessionsShareTheDescriptorsThereAre) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--heartbeat-ms", "60000"}, "",
                             {"prlimit", "--nofile=256:256"});
  constexpr uint32_t kAgents = 20;
  constexpr uint32_t kThreads = 30;
  std::vector<std::unique_ptr<RawAgent>> agents;
  for (uint32_t at = 0; at < kAgents; ++at) {
    agents.push_back(std::make_unique<RawAgent>(collector.ingest_port(), kPid + at));
    ASSERT_TRUE(agents.back()->ready) << at;
    for (uint32_t stream = 2; stream <= kThreads; ++stream) open_and_fill(*agents.back(), stream);
    ASSERT_TRUE(agents.back()->control.receive_ack(kThreads, kEvents)) << at;
  }
  for (const auto& agent : agents) end_recording(*agent, kThreads);
  for (uint32_t at = 0; at < kAgents; ++at) {
    const auto sessions = sealed_sessions(collector.root(), static_cast<int>(kPid + at));
    ASSERT_EQ(sessions.size(), 1u) << at;
    EXPECT_EQ(sessions[0].state(), "complete") << sessions[0].manifest()["reason"];
    EXPECT_EQ(sessions[0].totals().events, uint64_t{kThreads - 1} * kEvents);
  }
}

}  // namespace
}  // namespace collect::e2e
