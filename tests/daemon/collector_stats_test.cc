// What the collector counts, each number for itself.
#include <gmock/gmock.h>

#include <fstream>

#include "daemon/config.h"
#include "tests/daemon/collector_fixture.h"

namespace collect::daemon {
namespace {

using fakes::FrameSocket;

class CollectorStatsTest : public CollectorTest {
 protected:
  bool becomes(const std::function<bool(const api::Stats&)>& holds) {
    return eventually([&] { return holds(collector_->stats()); });
  }
};

TEST_F(CollectorStatsTest, NothingIsCountedBeforeSomebodyComes) {
  const api::Stats stats = collector_->stats();
  EXPECT_EQ(stats.version(), kVersion);
  EXPECT_EQ(stats.root(), root_);
  EXPECT_EQ(stats.ingest_address(), collector_->ingest_address());
  EXPECT_EQ(stats.agents_connected(), 0u);
  EXPECT_EQ(stats.sessions_active(), 0u);
  EXPECT_EQ(stats.connections_accepted(), 0u);
  EXPECT_EQ(stats.connections_refused(), 0u);
  EXPECT_EQ(stats.bytes_received(), 0u);
  EXPECT_EQ(stats.bytes_stored(), 0u);
  EXPECT_EQ(stats.pages_stored(), 0u);
  EXPECT_EQ(stats.pages_decoded(), 0u);
  EXPECT_EQ(stats.pages_bad_checksum(), 0u);
  EXPECT_EQ(stats.events_stored(), 0u);
  EXPECT_EQ(stats.events_lost(), 0u);
  EXPECT_EQ(stats.detail_records_stored(), 0u);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm").ignore(64, ' ') >> pages;
  const uint64_t page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(stats.resident_bytes() % page_bytes, 0u);
  EXPECT_GT(stats.resident_bytes(), pages * page_bytes / 2);
  EXPECT_LT(stats.resident_bytes(), pages * page_bytes * 2);
}

TEST_F(CollectorStatsTest, EventsPagesAndBytesAreCounted) {
  FakeProcess encoding = process(1, "app", 10);
  encoding.features = wire::kFeatureColumns;
  FakeAgent agent(encoding);
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 100);
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.events_stored() == 100; }));
  api::Stats stats = collector_->stats();
  EXPECT_EQ(stats.agents_connected(), 1u);
  EXPECT_EQ(stats.sessions_active(), 1u);
  EXPECT_EQ(stats.connections_accepted(), 2u);
  EXPECT_EQ(stats.connections_refused(), 0u);
  EXPECT_EQ(stats.pages_stored(), 1u);
  EXPECT_EQ(stats.pages_decoded(), 0u);
  EXPECT_EQ(stats.bytes_stored(), 3'200u);
  EXPECT_EQ(stats.detail_records_stored(), 0u);
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.bytes_received() > 3'200; }));
  // A page that came encoded.
  ASSERT_TRUE(agent.data().send_bytes(fakes::encoded_page_frame_bytes(
      fakes::index_page_header(1, 100, 50), fakes::index_events(100, 50))));
  if (agent.wait_stored(1, 150)) {
    stats = collector_->stats();
    EXPECT_EQ(stats.pages_stored(), 2u);
    EXPECT_EQ(stats.pages_decoded(), 1u);
    EXPECT_EQ(stats.events_stored(), 150u);
  } else {
    ADD_FAILURE() << "the page is not stored";
  }
  ASSERT_TRUE(agent.close_stream(1, 150));
  ASSERT_TRUE(agent.end_recording());
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.sessions_active() == 0; }));
  agent.say_goodbye(false);
  ASSERT_TRUE(becomes([](const api::Stats& now) { return now.agents_connected() == 0; }));
  EXPECT_TRUE(collector_->stop(fakes::kPatience)) << "there is nothing left to do";
}

TEST_F(CollectorStatsTest, APageWithAWrongChecksumIsCounted) {
  FakeAgent agent(process(1, "app", 10));
  ASSERT_TRUE(agent.connect(collector_->ingest_address()));
  begin(agent, 1, 10);
  std::vector<uint8_t> bytes = fakes::index_events(10, 10);
  std::vector<uint8_t> frame = fakes::page_frame_bytes(fakes::index_page_header(1, 10, 10), bytes);
  frame.back() ^= 1;
  ASSERT_TRUE(agent.data().send_bytes(frame));
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.pages_bad_checksum() == 1; }));
  EXPECT_EQ(collector_->stats().events_stored(), 10u);
}

TEST_F(CollectorStatsTest, StrangersAreRefused) {
  FrameSocket stranger = FrameSocket::connect(collector_->ingest_address());
  ASSERT_TRUE(stranger.send(wire::FrameType::kHeartbeat, wire::Heartbeat()));
  EXPECT_TRUE(stranger.ends());
  EXPECT_TRUE(becomes([](const api::Stats& now) { return now.connections_refused() == 1; }));
}

}  // namespace
}  // namespace collect::daemon
