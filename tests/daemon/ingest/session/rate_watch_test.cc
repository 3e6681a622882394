// Which functions are found among events that are written out here by hand, page after page.
#include "daemon/ingest/session/rate_watch.h"

#include <gtest/gtest.h>

#include <cstring>

namespace collect::ingest {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 30;  // ns
constexpr uint64_t kBegin = 77 * kPiece;
constexpr auto kCallEvent = atf::EventKind::kCall;
constexpr auto kReturnEvent = atf::EventKind::kReturn;

class RateWatchTest : public ::testing::TestWithParam<atf::Version> {
 protected:
  struct Event {
    uint64_t at_ns;
    uint64_t function_id;
    atf::EventKind kind = kCallEvent;
  };
  void look(RateWatch& watch, const std::vector<Event>& events, uint64_t known = 0) {
    std::vector<uint8_t> bytes(events.size() * atf::kEventBytes);
    for (size_t at = 0; at < events.size(); ++at) {
      const Event& event = events[at];
      atf::IndexEventV1 v1{event.at_ns, event.function_id, 7, uint32_t(event.kind),
                           0,           atf::kNoDetailV1};
      atf::IndexEventV2 v2{event.at_ns, event.function_id, atf::kNoDetail, uint8_t(event.kind), {}};
      const void* from = GetParam() == atf::Version::kV1 ? static_cast<void*>(&v1) : &v2;
      std::memcpy(bytes.data() + at * atf::kEventBytes, from, atf::kEventBytes);
    }
    Page page;
    page.stream_id = 1;
    page.lane = Lane::kIndex;
    page.record_count = static_cast<uint32_t>(events.size());
    page.bytes = bytes;
    watch.look_at(page, known);
  }
  // So many calls, evenly over `took_ns` from `at_ns` on, each with its return.
  std::vector<Event> calls(uint64_t function_id, uint64_t at_ns, uint64_t count, uint64_t took_ns) {
    std::vector<Event> events;
    for (uint64_t i = 0; i < count; ++i) {
      events.push_back({at_ns + i * took_ns / count, function_id});
      events.push_back({at_ns + i * took_ns / count, function_id, kReturnEvent});
    }
    return events;
  }
};

TEST_P(RateWatchTest, FindsTooManyCallsPerSecondOnce) {
  RateWatch watch(GetParam(), 1000);  // 1,073 in a piece
  look(watch, calls(5, kBegin, 1073, kPiece));
  EXPECT_TRUE(watch.take().empty());
  look(watch, calls(5, kBegin + kPiece, 1074, kPiece));
  const auto hot = watch.take();
  ASSERT_EQ(hot.size(), 1u);
  EXPECT_EQ(hot[0].function_id, 5u);
  EXPECT_NEAR(static_cast<double>(hot[0].calls_per_second), 1000, 2);
  look(watch, calls(5, kBegin + kPiece, 500, kPiece));
  EXPECT_TRUE(watch.take().empty()) << "it was found in this second";
  look(watch, calls(5, kBegin + 2 * kPiece, 2000, 1'000'000));
  const auto again = watch.take();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_NEAR(static_cast<double>(again[0].calls_per_second), 2e6, 4e3) << "2,000 in a ms";
}

TEST_P(RateWatchTest, ThreadsAreCountedTogetherHoweverTheyArrive) {
  RateWatch watch(GetParam(), 1000);
  look(watch, calls(5, kBegin, 600, kPiece / 2));
  look(watch, calls(5, kBegin + 3 * kPiece, 600, kPiece / 2));
  EXPECT_TRUE(watch.take().empty());
  look(watch, calls(5, kBegin + kPiece / 2, 600, kPiece / 2));  // of another one, which is behind
  EXPECT_EQ(watch.take().size(), 1u);
  look(watch, calls(5, kBegin + 4 * kPiece, 1, 1));
  look(watch, calls(5, kBegin, 5000, kPiece / 2));
  EXPECT_TRUE(watch.take().empty()) << "too far behind";
}

TEST_P(RateWatchTest, CountsOnlyNewEvents) {
  RateWatch watch(GetParam(), 1);
  const auto events = calls(5, kBegin, 2, 100);
  look(watch, {events.begin(), events.begin() + 2});
  look(watch, events, 4);
  EXPECT_TRUE(watch.take().empty());
  look(watch, events, 2);
  EXPECT_EQ(watch.take().size(), 1u);
}

TEST_P(RateWatchTest, ManyFunctionsAreBounded) {
  RateWatch watch(GetParam(), 1);
  for (uint64_t id = 0; id < 2 * kMaxRatedFunctions; ++id) {
    look(watch, {{kBegin + id, id << 32 | 7}, {kBegin + id, id << 32 | 7}});
    const auto hot = watch.take();
    ASSERT_EQ(hot.size(), 1u) << id;
    EXPECT_EQ(hot[0].function_id, id << 32 | 7);
  }
  for (uint64_t id = 0; id < 2 * kMaxHotFunctions; ++id) {
    look(watch, calls(id, kBegin + kPiece, 2, 10));
  }
  EXPECT_EQ(watch.take().size(), kMaxHotFunctions);
}

INSTANTIATE_TEST_SUITE_P(Versions, RateWatchTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2),
                         [](const auto& param) {
                           return param.param == atf::Version::kV1 ? "V1" : "V2";
                         });

}  // namespace
}  // namespace collect::ingest
