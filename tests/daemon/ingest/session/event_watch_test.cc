// What is seen among events that are written out here by hand, page after page.
#include "daemon/ingest/session/event_watch.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

namespace collect::ingest {
namespace {

using Kind = WatchedEvent::Kind;

struct Event {
  uint64_t at_ns;
  uint64_t function_id;
  atf::EventKind kind;
};

constexpr auto kCall = atf::EventKind::kCall;
constexpr auto kReturn = atf::EventKind::kReturn;
constexpr auto kThrow = atf::EventKind::kException;

class EventWatchTest : public ::testing::TestWithParam<atf::Version> {
 protected:
  void watch(std::vector<WatchedEvent> wanted) {
    watch_.emplace(GetParam(), std::move(wanted),
                   [this](const SeenEvent& seen) { seen_.push_back(seen); });
  }
  // As the records `first_seq` on of stream 1.
  void look(uint64_t first_seq, const std::vector<Event>& events, uint32_t lost_reasons = 0) {
    std::vector<uint8_t> bytes;
    for (const Event& event : events) {
      atf::IndexEventV1 v1{event.at_ns, event.function_id, 7, uint32_t(event.kind),
                           0,           atf::kNoDetailV1};
      atf::IndexEventV2 v2{event.at_ns, event.function_id, atf::kNoDetail, uint8_t(event.kind), {}};
      const void* from = GetParam() == atf::Version::kV1 ? static_cast<void*>(&v1) : &v2;
      const size_t at = bytes.size();
      bytes.resize(at + atf::kEventBytes);
      std::memcpy(bytes.data() + at, from, atf::kEventBytes);
    }
    Page page;
    page.stream_id = 1;
    page.lane = Lane::kIndex;
    page.first_seq = first_seq;
    page.record_count = static_cast<uint32_t>(events.size());
    page.lost_reasons = lost_reasons;
    page.bytes = bytes;
    watch_->look_at(page);
  }
  // The numbers of the watched events that were seen since the last look.
  std::vector<size_t> take() {
    std::vector<size_t> numbers;
    for (const SeenEvent& seen : seen_) numbers.push_back(seen.number);
    seen_.clear();
    return numbers;
  }
  using Numbers = std::vector<size_t>;

  std::optional<EventWatch> watch_;
  std::vector<SeenEvent> seen_;
};

TEST_P(EventWatchTest, CallIsSeenAndItsReturnIsNot) {
  watch({{Kind::kCall, 0, {5, 6}}, {Kind::kCall, 0, {6}}});
  look(0, {{10, 4, kCall}, {20, 5, kCall}, {30, 5, kReturn}, {40, 4, kReturn}});
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].number, 0u);
  EXPECT_EQ(seen_[0].function_id, 5u);
  EXPECT_EQ(seen_[0].at_ns, 20u);
  EXPECT_EQ(take(), Numbers{0});
  look(4, {{50, 6, kCall}});
  EXPECT_EQ(take(), (Numbers{0, 1}));
  look(5, {{60, 5, kReturn}, {61, 6, kReturn}});
  EXPECT_EQ(take(), Numbers{});
}

TEST_P(EventWatchTest, LongBlocksOfAnyThreadOnce) {
  using storage::StallKind;
  watch({{Kind::kBlocked, 100, {}}, {Kind::kCall, 0, {5}}});
  const auto off = [](uint32_t stream, StallKind kind, uint64_t first_ns, uint64_t last_ns) {
    return storage::StreamStall{stream, storage::make_stall(kind, first_ns, last_ns)};
  };
  std::vector<storage::StreamStall> stalls = {off(1, StallKind::kBlocked, 1000, 1100),
                                              off(1, StallKind::kPreempted, 1200, 1900),
                                              off(2, StallKind::kLock, 1200, 1900)};
  watch_->look_at(stalls);
  EXPECT_EQ(take(), Numbers{});
  stalls = {off(2, StallKind::kBlocked, 1000, 1101)};
  watch_->look_at(stalls);
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].at_ns, 1101u);
  EXPECT_EQ(seen_[0].took_ns, 101u);
  EXPECT_EQ(take(), Numbers{0});
  watch_->look_at(stalls);  // again, after a reconnect
  EXPECT_EQ(take(), Numbers{});
  stalls = {off(1, StallKind::kBlocked, 2000, 3000)};
  stalls[0].stall.count = 2;
  watch_->look_at(stalls);
  EXPECT_EQ(take(), Numbers{}) << "two of some length";
}

TEST_P(EventWatchTest, OnceForEachPage) {
  watch({{Kind::kCall, 0, {5}}});
  look(0, {{1, 5, kCall}, {2, 5, kReturn}, {3, 5, kCall}, {4, 5, kReturn}});
  EXPECT_EQ(take(), Numbers{0});
  look(4, {{5, 5, kCall}});
  EXPECT_EQ(take(), Numbers{0});
  look(2, {{3, 5, kCall}, {4, 5, kReturn}, {5, 5, kCall}});
  EXPECT_EQ(take(), Numbers{}) << "what was looked at comes again after a reconnect";
  look(3, {{4, 5, kReturn}, {5, 5, kCall}, {6, 5, kCall}});
  EXPECT_EQ(take(), Numbers{0}) << "its last event is new";
}

TEST_P(EventWatchTest, OnlyAnExceptionIsAnException) {
  watch({{Kind::kException, 0, {5}}});
  look(0, {{1, 5, kCall}, {2, 5, kReturn}, {3, 6, kCall}, {4, 6, kThrow}, {5, 5, kCall}});
  EXPECT_EQ(take(), Numbers{});
  look(5, {{6, 5, kThrow}});
  EXPECT_EQ(take(), Numbers{0});
}

TEST_P(EventWatchTest, CallIsLongWhenItEndsLate) {
  watch({{Kind::kLongCall, 100, {5}}});
  look(0, {{0, 5, kCall}, {100, 5, kReturn}, {200, 5, kCall}, {301, 5, kReturn}, {302, 9, kCall}});
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].at_ns, 301u);
  EXPECT_EQ(seen_[0].took_ns, 101u);
  take();
  // An exception ends a call too.
  look(5, {{400, 5, kCall}, {600, 5, kThrow}});
  EXPECT_EQ(take(), Numbers{0});
}

TEST_P(EventWatchTest, ReportsAHangingCallOnce) {
  watch({{Kind::kLongCall, 100, {5}}});
  look(0, {{0, 5, kCall}, {50, 9, kCall}});
  EXPECT_EQ(take(), Numbers{});
  look(2, {{101, 9, kReturn}});
  EXPECT_EQ(take(), Numbers{0});
  look(3, {{500, 9, kCall}, {600, 9, kReturn}, {700, 5, kReturn}});
  EXPECT_EQ(take(), Numbers{});
}

TEST_P(EventWatchTest, RecursionIsMeasuredCallByCall) {
  watch({{Kind::kLongCall, 100, {5}}});
  look(0, {{0, 5, kCall}, {40, 5, kCall}, {60, 5, kReturn}, {90, 5, kReturn}});
  EXPECT_EQ(take(), Numbers{});
  look(4, {{1000, 5, kCall}, {1010, 5, kCall}, {1020, 5, kReturn}, {1200, 5, kReturn}});
  ASSERT_EQ(seen_.size(), 1u);
  EXPECT_EQ(seen_[0].took_ns, 200u);
}

// Without its return a call would seem to go on for ever.
TEST_P(EventWatchTest, LossEndsOpenCalls) {
  for (const bool is_numbered : {true, false}) {
    watch({{Kind::kLongCall, 100, {5}}});
    look(0, {{0, 5, kCall}});
    look(is_numbered ? 9 : 1, {{500, 9, kCall}}, is_numbered ? 0u : uint32_t{kLostRingFull});
    EXPECT_EQ(take(), Numbers{}) << is_numbered;
  }
}

TEST_P(EventWatchTest, ManyOpenCallsAreBounded) {
  watch({{Kind::kLongCall, 100, {5}}});
  std::vector<Event> calls(kMaxOpenCalls + 10, Event{0, 5, kCall});
  look(0, calls);
  EXPECT_EQ(take(), Numbers{});
  look(calls.size(), {{101, 9, kCall}});
  EXPECT_EQ(take(), Numbers{0});
}

// The calls that are measured are the first so many: one more is not, and its end is nothing new.
TEST_P(EventWatchTest, LastCallThatIsMeasured) {
  for (const size_t open : {kMaxOpenCalls - 1, kMaxOpenCalls}) {
    watch({{Kind::kLongCall, 1000, {5}}, {Kind::kLongCall, 100, {6}}});
    std::vector<Event> events(open, Event{0, 5, kCall});
    events.push_back({0, 6, kCall});
    events.push_back({200, 6, kReturn});
    look(0, events);
    EXPECT_EQ(take(), open < kMaxOpenCalls ? Numbers{1} : Numbers{}) << open;
  }
}

// What a page lost is before it. The same page again has lost nothing more.
TEST_P(EventWatchTest, RepeatedPageLosesNothingAgain) {
  watch({{Kind::kLongCall, 100, {5}}});
  look(0, {{0, 5, kCall}}, kLostRingFull);
  look(0, {{0, 5, kCall}}, kLostRingFull);
  look(1, {{200, 9, kCall}});
  EXPECT_EQ(take(), Numbers{0});
}

TEST_P(EventWatchTest, TimeThatGoesBackIsNotALongOne) {
  watch({{Kind::kLongCall, 100, {5}}});
  look(0, {{1000, 5, kCall}, {500, 5, kReturn}});
  EXPECT_EQ(take(), Numbers{});
}

// A call without an end of its own ended with the one around it.
TEST_P(EventWatchTest, InnerCallsEndWithTheOuterCall) {
  watch({{Kind::kLongCall, 100, {5}}, {Kind::kLongCall, 1000, {6}}});
  look(0, {{0, 5, kCall}, {10, 6, kCall}, {20, 5, kReturn}, {5000, 9, kCall}});
  EXPECT_EQ(take(), Numbers{});
  // And an end without a call ends nothing.
  look(4, {{6000, 5, kCall}, {6010, 6, kReturn}, {6200, 5, kReturn}});
  EXPECT_EQ(take(), Numbers{0});
}

TEST_P(EventWatchTest, StreamsAndEventsAreKeptApart) {
  watch({{Kind::kCall, 0, {1, 2}}, {Kind::kException, 0, {2}}, {Kind::kLongCall, 50, {2}}});
  look(0, {{0, 1, kThrow}, {1, 2, kCall}, {2, 2, kThrow}});
  EXPECT_EQ(take(), (Numbers{0, 1}));
  look(3, {{10, 2, kCall}, {100, 2, kReturn}});
  EXPECT_EQ(take(), (Numbers{0, 2}));
  std::vector<Event> others;
  for (uint64_t id = 3; id < 30'000; ++id) others.push_back({200 + id, id, kCall});
  look(5, others);
  EXPECT_EQ(take(), Numbers{}) << "in any slot of the table";
}

TEST_P(EventWatchTest, AllSixtyFourCanBeWatched) {
  std::vector<WatchedEvent> wanted;
  for (uint64_t id = 0; id < kMaxWatchedEvents; ++id) wanted.push_back({Kind::kCall, 0, {id + 1}});
  watch(wanted);
  look(0, {{1, 64, kCall}, {2, 1, kCall}, {3, 32, kCall}});
  EXPECT_EQ(take(), (Numbers{63, 0, 31}));
}

INSTANTIATE_TEST_SUITE_P(Versions, EventWatchTest,
                         ::testing::Values(atf::Version::kV1, atf::Version::kV2));

}  // namespace
}  // namespace collect::ingest
