#include "daemon/control/relay/http2_meter.h"

#include <gtest/gtest.h>

#include <string>

#include "daemon/control/relay/call_rate.h"
#include "tests/daemon/control/http2_frames.h"

namespace collect::control {
namespace {

class Http2MeterTest : public testing::Test {
 protected:
  Http2MeterTest() { client(kPreface); }
  void client(const std::string& bytes) {
    const std::string fault = meter_.from_client(bytes_of(bytes), costs_);
    if (fault_.empty()) fault_ = fault;
  }
  void server(const std::string& bytes) { meter_.from_server(bytes_of(bytes)); }

  Http2Meter meter_;
  uint32_t costs_ = 0;
  std::string fault_;
};

TEST_F(Http2MeterTest, CountsCostsHoweverTheBytesAreSplit) {
  const std::string bytes = frame(4, 0, 0, 12) + frame(4, 1, 0) + frame(1, 4, 1, 40) +
                            frame(0, 1, 1, 300) + frame(6, 0, 0, 8) + frame(6, 1, 0, 8) +
                            frame(8, 0, 0, 4) + frame(1, 5, 3, 40);
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    Http2Meter meter;
    uint32_t costs = 0;
    const std::string whole = kPreface + bytes;
    for (size_t at = 0; at < whole.size(); at += cut) {
      EXPECT_EQ(meter.from_client(bytes_of(whole.substr(at, cut)), costs), "");
    }
    // SETTINGS, two calls, PING; no acknowledgement, no DATA, no WINDOW_UPDATE.
    EXPECT_EQ(costs, 4u) << cut;
    EXPECT_EQ(meter.open_streams(), 2u) << cut;
  }
}

TEST_F(Http2MeterTest, StreamsEndByEitherSide) {
  client(frame(1, 4, 1, 10) + frame(1, 4, 3, 10) + frame(1, 4, 5, 10) + frame(1, 4, 7, 10));
  EXPECT_EQ(meter_.open_streams(), 4u);
  client(frame(3, 0, 1, 4));
  server(frame(4, 0, 0) + frame(1, 4, 3, 20) + frame(0, 0, 3, 50) + frame(1, 5, 3, 20));
  server(frame(3, 0, 5, 4));
  EXPECT_EQ(meter_.open_streams(), 1u);
  // Trailers of a stream that is over begin nothing.
  client(frame(1, 5, 3, 10));
  EXPECT_EQ(meter_.open_streams(), 1u);
  EXPECT_EQ(fault_, "");
}

TEST_F(Http2MeterTest, MoreOpenStreamsThanTheLimitAreAFault) {
  for (uint32_t i = 0; i < kMaxOpenStreams; ++i) client(frame(1, 4, 2 * i + 1, 1));
  EXPECT_EQ(fault_, "");
  client(frame(1, 4, 2 * kMaxOpenStreams + 1, 1));
  EXPECT_EQ(fault_, "more than " + std::to_string(kMaxOpenStreams) + " calls at once");
}

TEST_F(Http2MeterTest, MoreHeaderBytesThanTheLimitAreAFault) {
  client(frame(1, 0, 1, 16'384) + frame(9, 0, 1, 16'384));
  EXPECT_EQ(fault_, "");
  client(frame(9, 4, 1, 1));
  EXPECT_EQ(fault_, "the headers of one call take more than 32768 bytes");
}

TEST_F(Http2MeterTest, EmptyContinuationsCountToo) {
  client(frame(1, 0, 1, 1));
  for (size_t i = 0; i < kMaxHeaderBlockBytes / kFrameHeaderBytes + 1; ++i) client(frame(9, 0, 1));
  EXPECT_NE(fault_, "");
}

TEST(Http2PrefaceTest, EveryOtherBeginningIsAFault) {
  for (size_t at = 0; at < kPreface.size(); ++at) {
    std::string wrong = kPreface;
    wrong[at] = static_cast<char>(wrong[at] ^ 1);
    Http2Meter meter;
    uint32_t costs = 0;
    EXPECT_NE(meter.from_client(bytes_of(wrong), costs), "") << at;
  }
}

TEST(CallRateTest, RefillsWithTime) {
  const CallRate::Time start{};
  const auto after = [start](int ms) { return start + std::chrono::milliseconds(ms); };
  CallRate rate(100, 50, start);
  rate.take(50, start);
  EXPECT_LE(rate.free_at(start), start);
  rate.take(100, start);
  EXPECT_EQ(rate.free_at(start), after(1000));
  EXPECT_EQ(rate.free_at(after(400)), after(1000));
  EXPECT_LE(rate.free_at(after(1000)), after(1000));
  // Never more than the burst.
  rate.take(50, after(100'000));
  EXPECT_LE(rate.free_at(after(100'000)), after(100'000));
  rate.take(1, after(100'000));
  EXPECT_GT(rate.free_at(after(100'000)), after(100'000));
}

}  // namespace
}  // namespace collect::control
