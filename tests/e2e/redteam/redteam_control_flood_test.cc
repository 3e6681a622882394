// Floods of HTTP/2 against the control port of a real daemon (findings M5 and H4): its memory stays
// bounded, others are served meanwhile, and it answers again after it ran out of descriptors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/redteam/raw_http2.h"

namespace collect::e2e {
namespace {

using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1u << 20;
// Far below what gRPC 1.51 takes without a bound: 800 MB in four seconds, and it grows on.
constexpr uint64_t kMaxGrowthBytes = 100 * kMiB;
constexpr seconds kFloodTime{5};
constexpr const char* kStats = "/collect.control.v1.Collector/GetStats";

class RedTeamControlFloodTest : public testing::Test {
 protected:
  // Sends what `next` makes until the time is over or the collector has had enough. Others must be
  // served in the middle of it.
  template <class Next>
  void flood(Next next) {
    RawHttp2 attacker(collector_.control_port());
    ASSERT_TRUE(attacker.send(http2::greeting()));
    const uint64_t before = collector_.process().resident_bytes();
    const auto begun = steady_clock::now();
    uint32_t round = 0;
    bool goes_on = true;
    while (goes_on && steady_clock::now() - begun < kFloodTime) {
      std::string bytes;
      for (int i = 0; i < 200; ++i) bytes += next(round++);
      goes_on = attacker.send(bytes);
    }
    const Ending stats = collector_.ctl({"collectors"});
    EXPECT_TRUE(stats.exited_with(0)) << stats.errors;
    const uint64_t after = collector_.process().resident_bytes();
    const uint64_t grown = after > before ? after - before : 0;
    RecordProperty("grown_kib", static_cast<int>(grown >> 10));
    RecordProperty("frames", static_cast<int>(round));
    EXPECT_LT(grown, kMaxGrowthBytes);
  }

  const Scratch scratch_;
  CollectorProcess collector_{scratch_};
};

TEST_F(RedTeamControlFloodTest, RapidResetTakesNoMemory) {
  flood([](uint32_t round) {
    const uint32_t stream = 2 * round + 1;
    return http2::call(stream, kStats) + http2::reset(stream);
  });
}

TEST_F(RedTeamControlFloodTest, StreamsHeldOpenEndTheConnection) {
  RawHttp2 attacker(collector_.control_port());
  ASSERT_TRUE(attacker.send(http2::greeting()));
  std::string bytes;
  for (uint32_t i = 0; i < 20'000; ++i) bytes += http2::call(2 * i + 1, kStats);
  (void)attacker.send(bytes);
  EXPECT_TRUE(attacker.is_closed_by_peer());
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return collector_.process().errors().find("calls at once") != std::string::npos;
  })) << collector_.process().errors();
}

TEST_F(RedTeamControlFloodTest, ContinuationsEndTheConnection) {
  RawHttp2 attacker(collector_.control_port());
  ASSERT_TRUE(attacker.send(http2::greeting() + http2::call(1, kStats, 0)));
  std::string bytes;
  for (uint32_t i = 0; i < 20'000; ++i) {
    bytes += http2::frame(9, 0, 1, http2::header_field("x-" + std::to_string(i), "y"));
  }
  (void)attacker.send(bytes);
  EXPECT_TRUE(attacker.is_closed_by_peer());
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return collector_.process().errors().find("headers of one call") != std::string::npos;
  })) << collector_.process().errors();
}

TEST_F(RedTeamControlFloodTest, SettingsTakeNoMemory) {
  flood([](uint32_t) { return http2::frame(4, 0, 0); });
}

TEST_F(RedTeamControlFloodTest, PingsTakeNoMemory) {
  flood([](uint32_t) { return http2::frame(6, 0, 0, "12345678"); });
}

TEST_F(RedTeamControlFloodTest, ClosesConnectionsThatAreNotHttp2) {
  RawHttp2 browser(collector_.control_port());
  ASSERT_TRUE(browser.send("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"));
  EXPECT_TRUE(browser.is_closed_by_peer());
}

// gRPC's own listener never answered again after this.
TEST(RedTeamControlDescriptorsTest, PortAnswersAgainAfterDescriptorsRanOut) {
  if (::access("/usr/bin/prlimit", X_OK) != 0) GTEST_SKIP() << "prlimit is not installed";
  const Scratch scratch;
  const uint16_t port = free_port();
  const std::string control = "127.0.0.1:" + std::to_string(port);
  ChildProcess daemon(
      scratch.path(),
      {"/usr/bin/prlimit", "--nofile=128:128", program("collectord"), "--root", scratch / "root",
       "--adb", "off", "--usbmux", "off", "--ingest", "127.0.0.1:0", "--control", control});
  ASSERT_TRUE(eventually(seconds(20), [&] {
    return daemon.errors().find("is ready") != std::string::npos;
  })) << daemon.errors();
  {
    std::vector<RawHttp2> idle;
    for (int i = 0; i < 200; ++i) {
      idle.emplace_back(port);
      (void)idle.back().send(http2::greeting());
    }
    EXPECT_TRUE(eventually(seconds(20), [&] {
      return daemon.errors().find("no descriptor left") != std::string::npos ||
             daemon.errors().find("Too many open files") != std::string::npos;
    })) << daemon.errors();
  }
  Ending stats;
  EXPECT_TRUE(eventually(seconds(30),
                         [&] {
                           stats = run(scratch.path(),
                                       {program("collectctl"), "--control", control, "collectors"});
                           return stats.exited_with(0);
                         }))
      << stats.errors << daemon.errors();
  daemon.send_signal(SIGTERM);
  EXPECT_TRUE(daemon.wait(seconds(30)).exited_with(0)) << daemon.errors();
}

}  // namespace
}  // namespace collect::e2e
