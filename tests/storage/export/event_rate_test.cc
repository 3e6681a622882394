#include "storage/export/event_rate.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace collect::exports {
namespace {

TEST(EventRate, HasTheEventsOfEachPart) {
  const auto changes = [](const EventRate& rate) {
    std::vector<std::pair<uint64_t, uint64_t>> all;
    rate.for_each_change([&](uint64_t ns, uint64_t events) { all.emplace_back(ns, events); });
    return all;
  };
  using Changes = std::vector<std::pair<uint64_t, uint64_t>>;
  constexpr uint64_t kG = 1'000'000'000;
  EventRate moment(5, 5);
  moment.add(5);
  moment.add(5);
  EXPECT_EQ(changes(moment), (Changes{{5, 2 * kG}, {6, 0}}));
  EXPECT_EQ(changes(EventRate(5, 5)), (Changes{{5, 0}, {6, 0}}));
  // 1,024 parts of one nanosecond.
  EventRate fine(100, 1123);
  for (const uint64_t ns : {0u, 99u, 100u, 101u, 101u, 103u, 1122u, 1123u, 1124u, 9999u}) {
    fine.add(ns);
  }
  EXPECT_EQ(changes(fine), (Changes{{100, 3 * kG},
                                    {101, 2 * kG},
                                    {102, 0},
                                    {103, kG},
                                    {104, 0},
                                    {1122, kG},
                                    {1123, 3 * kG},
                                    {1124, 0}}));
  // One more, and a part has two; what is the same as before it is no change.
  EventRate coarse(100, 1124);
  for (const uint64_t ns : {100u, 103u, 104u, 1124u}) coarse.add(ns);
  EXPECT_EQ(changes(coarse), (Changes{{100, kG / 2}, {106, 0}, {1124, kG / 2}, {1126, 0}}));
  EventRate thirds(0, 3 * 1024);
  thirds.add(0);
  EXPECT_EQ(changes(thirds).front().second, 250'000'000u);
}

}  // namespace
}  // namespace collect::exports
