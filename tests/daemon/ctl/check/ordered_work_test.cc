#include "daemon/ctl/check/ordered_work.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace collect::ctl {
namespace {

struct Piece {
  uint64_t number = 0;
  uint64_t square = 0;
};

class OrderedWorkOf : public ::testing::TestWithParam<size_t> {
 protected:
  // Squares of the numbers below `count`, as far as take() wanted them.
  std::vector<uint64_t> squares(uint64_t count, uint64_t wanted) {
    std::vector<uint64_t> taken;
    std::vector<std::atomic<int>> busy(GetParam());
    work_in_order<Piece>(
        GetParam(),
        [&](Piece& piece) {
          piece.number = made_;
          return made_ < count && ++made_ != 0;
        },
        [&](size_t worker, Piece& piece) {
          EXPECT_EQ(busy[worker].fetch_add(1), 0) << "one piece at a time";
          // The later a piece is made, the sooner it is done: results come out of order.
          uint64_t sum = 0;
          for (uint64_t i = 0; i < (count - piece.number) % 64; ++i) {
            sum += std::atomic_ref(piece.number).load();
          }
          piece.square = piece.number * piece.number + (sum == UINT64_MAX);
          busy[worker].fetch_sub(1);
        },
        [&](Piece& piece) {
          taken.push_back(piece.square);
          return taken.size() < wanted;
        });
    return taken;
  }

  uint64_t made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Workers, OrderedWorkOf, ::testing::Values(1, 2, 3, 8, 64));

TEST_P(OrderedWorkOf, EveryResultInOrder) {
  for (const uint64_t count : {0, 1, 2, 5, 1000}) {
    made_ = 0;
    const std::vector<uint64_t> taken = squares(count, UINT64_MAX);
    ASSERT_EQ(taken.size(), count);
    for (uint64_t i = 0; i < count; ++i) ASSERT_EQ(taken[i], i * i);
  }
}

TEST_P(OrderedWorkOf, EndsWhenNoMoreAreWanted) {
  const std::vector<uint64_t> taken = squares(UINT64_MAX, 10);
  EXPECT_EQ(taken.size(), 10u);
  EXPECT_EQ(taken.back(), 81u);
  EXPECT_LE(made_, 10 + 3 * GetParam()) << "as many as there is room for, and no more";
}

}  // namespace
}  // namespace collect::ctl
