// What all connections share: remembered processes, refusals in the log, complete recordings, and
// the limits that come from the settings and from the system.
#include "daemon/ingest/session/core.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/ingest/link/descriptors.h"
#include "daemon/ingest/link/limits.h"
#include "daemon/ingest/session/completed_sessions.h"
#include "daemon/ingest/session/old_sessions.h"
#include "tests/fakes/machine/socket_address.h"

namespace collect::ingest {
namespace {

using principal::Resource;
using testing::HasSubstr;

ProcessId process(size_t number) {
  ProcessId id{};
  for (size_t at = 0; at < sizeof number; ++at) id[at] = static_cast<uint8_t>(number >> 8 * at);
  return id;
}

TEST(RecentProcessesTest, OldestIsForgotten) {
  RecentProcesses remembered;
  for (size_t at = 0; at < kMaxRecentProcesses; ++at) remembered.add(process(at));
  remembered.add(process(5));  // known already: no one goes for it
  EXPECT_TRUE(remembered.holds(process(0)));
  remembered.add(process(kMaxRecentProcesses));
  EXPECT_FALSE(remembered.holds(process(0)));
  EXPECT_TRUE(remembered.holds(process(1)));
  EXPECT_TRUE(remembered.holds(process(kMaxRecentProcesses)));
}

TEST(RecentProcessesTest, RemovalFreesAPlace) {
  RecentProcesses remembered;
  for (size_t at = 0; at < kMaxRecentProcesses; ++at) remembered.add(process(at));
  remembered.remove(process(7));
  remembered.remove(process(7));
  remembered.remove(process(999'999));
  EXPECT_FALSE(remembered.holds(process(7)));
  remembered.add(process(1'000'000));
  EXPECT_TRUE(remembered.holds(process(0)));
  remembered.add(process(1'000'001));
  EXPECT_FALSE(remembered.holds(process(0)));
}

TEST(LogRateLimiterTest, LimitsLinesOfAPeriodAndCountsTheRest) {
  LogRateLimiter limit;
  const auto start = std::chrono::steady_clock::time_point() + std::chrono::hours(1);
  for (uint32_t at = 0; at < kRefusalLinesPerPeriod; ++at) EXPECT_EQ(limit.admit("x", start), "x");
  EXPECT_EQ(limit.admit("x", start), "");
  EXPECT_EQ(limit.admit("x", start + kRefusalLogPeriod), "");
  const auto next = start + kRefusalLogPeriod + std::chrono::milliseconds(1);
  EXPECT_EQ(limit.admit("x", next), "x (2 such lines were left out before)");
  for (uint32_t at = 1; at < kRefusalLinesPerPeriod; ++at) EXPECT_EQ(limit.admit("x", next), "x");
  EXPECT_EQ(limit.admit("x", next), "");
  EXPECT_EQ(limit.admit("x", next + kRefusalLogPeriod), "") << "the period began again";
}

TEST(CompletedSessionsTest, AreFoundByProcessAndRecording) {
  CompletedSessions completed;
  const storage::SessionPath session_path{"session", 1, "session/pid_1", "/traces/session/pid_1"};
  completed.add(process(1), 2, session_path);
  completed.add(process(1), 0, session_path);  // a feed's
  ASSERT_TRUE(completed.find(process(1), 2, 1).session_path);
  EXPECT_EQ(completed.find(process(1), 2, 1).session_path->name, "session/pid_1");
  EXPECT_FALSE(completed.find(process(1), 1, 1).session_path);
  EXPECT_FALSE(completed.find(process(1), 0, 1).session_path);
  EXPECT_FALSE(completed.find(process(2), 2, 1).session_path);
}

TEST(CompletedSessionsTest, IsUnknownUntilOldSessionsAreLookedAt) {
  CompletedSessions completed;
  completed.expect(4711);
  completed.expect(4711);
  EXPECT_FALSE(completed.find(process(1), 1, 4711).is_known);
  EXPECT_TRUE(completed.find(process(1), 0, 4711).is_known) << "no one repeats a feed";
  EXPECT_TRUE(completed.find(process(1), 1, 4712).is_known);
  completed.looked_at(4711);
  EXPECT_FALSE(completed.find(process(1), 1, 4711).is_known);
  completed.looked_at(4711);
  EXPECT_TRUE(completed.find(process(1), 1, 4711).is_known);
  completed.looked_at(4711);
  completed.expect(4711);
  EXPECT_FALSE(completed.find(process(1), 1, 4711).is_known);
}

TEST(CompletedSessionsTest, OldestIsForgotten) {
  CompletedSessions completed;
  for (size_t at = 0; at < kMaxCompletedSessions; ++at) completed.add(process(at), 1, {});
  completed.add(process(3), 1, {});  // known already
  EXPECT_TRUE(completed.find(process(0), 1, 1).session_path);
  completed.add(process(kMaxCompletedSessions), 1, {});
  EXPECT_FALSE(completed.find(process(0), 1, 1).session_path);
  EXPECT_TRUE(completed.find(process(1), 1, 1).session_path);
  EXPECT_TRUE(completed.find(process(kMaxCompletedSessions), 1, 1).session_path);
}

// Each field where it belongs.
TEST(OldSessionsTest, SessionOnDiskIsShownAsItsManifestSays) {
  storage::Manifest manifest;
  manifest.state = storage::SessionState::kComplete;
  manifest.reason = "reason";
  manifest.identity.recording = 1;
  manifest.identity.process_name = "name";
  manifest.identity.pid = 2;
  manifest.identity.device_id = "device";
  manifest.identity.route = "route";
  manifest.identity.tag = "tag";
  manifest.created_unix_ns = 3'000'000'000;
  manifest.finished_unix_ns = 4'000'000'000;
  manifest.totals.events = 5;
  manifest.process_end = {storage::ProcessEnd::How::kExited, 6};
  manifest.symbols_state = storage::SymbolsState::kDone;
  const storage::SessionPath session_path{"session", 2, "session/pid_2", "/sessions/session/pid_2"};
  const SessionSnapshot shown = snapshot_of(manifest, session_path);
  EXPECT_EQ(shown.name, "session/pid_2");
  EXPECT_EQ(shown.directory, "/sessions/session/pid_2");
  EXPECT_EQ(shown.state, SessionState::kComplete);
  EXPECT_EQ(shown.status, "reason");
  EXPECT_EQ(shown.recording, 1u);
  EXPECT_EQ(shown.process_name, "name");
  EXPECT_EQ(shown.pid, 2u);
  EXPECT_EQ(shown.device_id, "device");
  EXPECT_EQ(shown.route, "route");
  EXPECT_EQ(shown.tag, "tag");
  EXPECT_EQ(shown.start_time, SystemTime(std::chrono::seconds(3)));
  EXPECT_EQ(shown.end_time, SystemTime(std::chrono::seconds(4)));
  EXPECT_EQ(shown.totals.events, 5u);
  EXPECT_EQ(shown.process_end, manifest.process_end);
  EXPECT_EQ(shown.symbols, storage::SymbolsState::kDone);
  EXPECT_TRUE(shown.health.is_complete());
  // Complete is only what has the last counts of each thread.
  manifest.threads.resize(1);
  EXPECT_EQ(snapshot_of(manifest, session_path).state, SessionState::kRecovered);
  manifest.state = storage::SessionState::kRecovered;
  EXPECT_EQ(snapshot_of(manifest, session_path).state, SessionState::kRecovered);
  for (const auto state : {storage::SessionState::kFailed, storage::SessionState::kRecording}) {
    manifest.state = state;
    EXPECT_EQ(snapshot_of(manifest, session_path).state, SessionState::kFailed);
  }
}

TEST(DescriptorsTest, SomeAreKeptForEverythingElse) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const auto usable = [&](rlim_t limit) {
    const rlimit changed{std::min(limit, before.rlim_max), before.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &changed), 0);
    const uint64_t answer = usable_descriptors();
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    return answer;
  };
  EXPECT_EQ(usable(400), 300u) << "a quarter of few";
  if (before.rlim_max < 8'192) GTEST_SKIP() << "the limit of open files can't be raised";
  EXPECT_EQ(usable(4'096), 3'072u);
  EXPECT_EQ(usable(8'192), 8'192u - 1'024) << "and no more than 1,024";
}

TEST(DescriptorsTest, EachBudgetComesFromItsSetting) {
  IngestOptions options;
  options.descriptors = 1'000;
  options.max_connections = 400;
  options.max_sessions = 11;
  options.accounted_memory = 12;
  options.unsealed_files = 13;
  options.stream_opens_per_second = 15;
  options.stream_opens_at_once = 16;
  principal::BudgetLimits limits = budget_limits(options);
  EXPECT_EQ(limits[Resource::kDescriptors].total, 1'000u);
  EXPECT_EQ(limits[Resource::kConnections].total, 400u);
  EXPECT_EQ(limits[Resource::kSessions].total, 11u);
  EXPECT_EQ(limits[Resource::kMemory].total, 12u);
  EXPECT_EQ(limits[Resource::kInodes].total, 13u);
  // Everybody may have so much, and the setting that a user changes is named (DAEMON.md "Limits").
  EXPECT_EQ(limits[Resource::kDescriptors].least, 8u);
  EXPECT_EQ(limits[Resource::kConnections].least, 8u);
  EXPECT_EQ(limits[Resource::kSessions].least, 4u);
  EXPECT_EQ(limits[Resource::kMemory].least, uint64_t{4} << 20);
  EXPECT_EQ(limits[Resource::kInodes].least, 256u);
  EXPECT_EQ(limits[Resource::kDescriptors].setting, "the limit of open files");
  EXPECT_EQ(limits[Resource::kConnections].setting, "max_connections");
  EXPECT_EQ(limits[Resource::kSessions].setting, "max_unsealed_sessions");
  EXPECT_EQ(limits[Resource::kMemory].setting, "max_memory_bytes");
  EXPECT_EQ(limits[Resource::kInodes].setting, "max_unsealed_files");
  EXPECT_EQ(limits.stream_opens.per_second, 15);
  EXPECT_EQ(limits.stream_opens.burst, 16);
  EXPECT_EQ(limits.manifest_bytes.per_second, 64u << 20);
  EXPECT_EQ(limits.manifest_bytes.burst, 256u << 20);
  options.max_connections = 600;  // half of the descriptors are for what the connections bring
  EXPECT_EQ(budget_limits(options)[Resource::kConnections].total, 500u);
  options.descriptors = 0;
  limits = budget_limits(options);
  EXPECT_EQ(limits[Resource::kDescriptors].total, usable_descriptors());
}

// A listener with so many connections that wait for it, and their other ends.
class Waiting {
 public:
  explicit Waiting(int count) {
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in bound{};
    const fakes::SocketAddress any = fakes::tcp4(INADDR_LOOPBACK, 0);
    EXPECT_EQ(::bind(listener_, any.get(), any.bytes), 0);
    EXPECT_EQ(::listen(listener_, 256), 0);
    socklen_t bytes = sizeof bound;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&bound), &bytes), 0);
    const fakes::SocketAddress to = fakes::tcp4(INADDR_LOOPBACK, ntohs(bound.sin_port));
    for (int i = 0; i < count; ++i) {
      clients_.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
      EXPECT_EQ(::connect(clients_.back(), to.get(), to.bytes), 0);
    }
  }
  ~Waiting() {
    for (const int client : clients_) ::close(client);
    ::close(listener_);
  }
  int listener() const { return listener_; }
  int client(size_t number) const { return clients_[number]; }
  // All that the client receives before the end.
  std::string received(size_t client) const {
    std::string text;
    char some[512];
    ssize_t got = 0;
    while ((got = ::recv(clients_[client], some, sizeof some, 0)) > 0) {
      text.append(some, static_cast<size_t>(got));
    }
    return text;
  }

 private:
  int listener_ = -1;
  std::vector<int> clients_;
};

TEST(SpareDescriptorTest, TellsWaitingPeersToComeAgain) {
  SpareDescriptor spare;
  const Waiting waiting(2);
  EXPECT_EQ(spare.turn_away(waiting.listener(), true), 2u);
  EXPECT_THAT(waiting.received(0), HasSubstr("the collector's machine has no descriptor left"));
  EXPECT_THAT(waiting.received(1), HasSubstr("connect again"));
  EXPECT_EQ(spare.turn_away(waiting.listener(), true), 0u);
  const Waiting others(1);
  EXPECT_EQ(spare.turn_away(others.listener(), false), 1u);
  EXPECT_EQ(others.received(0), "") << "within TLS nothing can be said";
}

// What it has sent already is read, so that the end is an end and no reset; and a client that ended
// its own side is not waited for.
TEST(SpareDescriptorTest, TurnsSendersAwayWithoutAReset) {
  SpareDescriptor spare;
  Waiting waiting(2);
  const char sent[6000] = {};
  ASSERT_EQ(::send(waiting.client(0), sent, sizeof sent, MSG_NOSIGNAL), ssize_t{sizeof sent});
  ASSERT_EQ(::shutdown(waiting.client(1), SHUT_WR), 0);
  EXPECT_EQ(spare.turn_away(waiting.listener(), true), 2u);
  for (const size_t client : {0, 1}) {
    EXPECT_THAT(waiting.received(client), HasSubstr("connect again"));
    char byte = 0;
    EXPECT_EQ(::recv(waiting.client(client), &byte, 1, 0), 0) << "a reset";
  }
}

int lowest_free_descriptor() {
  const int handle = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(handle);
  return handle;
}

TEST(SpareDescriptorTest, IsOneAndIsGivenBack) {
  const int before = lowest_free_descriptor();
  {
    SpareDescriptor spare;
    EXPECT_GT(lowest_free_descriptor(), before);
    const Waiting empty(0);
    const int with_listener = lowest_free_descriptor();
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(spare.turn_away(empty.listener(), true), 0u);
      EXPECT_EQ(lowest_free_descriptor(), with_listener) << "it is still kept";
    }
  }
  EXPECT_EQ(lowest_free_descriptor(), before);
}

TEST(SpareDescriptorTest, NoMoreThanSoManyInOneGo) {
  SpareDescriptor spare;
  const Waiting waiting(70);
  EXPECT_EQ(spare.turn_away(waiting.listener(), true), 64u);
  EXPECT_EQ(spare.turn_away(waiting.listener(), true), 6u);
}

// That is what it is for: this process can open nothing more.
TEST(SpareDescriptorTest, ServesWhereNoDescriptorIsLeft) {
  SpareDescriptor spare;
  const Waiting waiting(3);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int highest = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(highest);
  const rlimit none{static_cast<rlim_t>(highest), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_LT(::open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
  const uint32_t turned_away = spare.turn_away(waiting.listener(), true);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(turned_away, 3u);
  EXPECT_THAT(waiting.received(2), HasSubstr("connect again"));
}

}  // namespace
}  // namespace collect::ingest
