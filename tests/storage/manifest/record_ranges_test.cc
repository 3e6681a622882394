#include "storage/manifest/record_ranges.h"

#include <gtest/gtest.h>

namespace collect::storage {
namespace {

Gap gap_of(uint32_t thread, uint64_t before_seq, uint64_t numbered, uint32_t merged = 1) {
  Gap gap;
  gap.thread = thread;
  gap.before_seq = before_seq;
  gap.lost = numbered + 3;  // records without numbers are lost too
  gap.numbered_lost = numbered;
  gap.merged = merged;
  return gap;
}

std::string text_of(const std::vector<RecordRange>& ranges) {
  std::string text;
  for (const RecordRange& range : ranges) {
    text += std::to_string(range.position) + ":" + std::to_string(range.first_seq) + "-" +
            std::to_string(range.end_seq()) + (range.is_exact ? " " : "? ");
  }
  return text;
}

TEST(RecordRanges, WithoutNumberedLossPositionsAreNumbers) {
  EXPECT_EQ(text_of(record_ranges({}, 0, Lane::kIndex, 10)), "0:0-10 ");
  EXPECT_EQ(text_of(record_ranges({}, 0, Lane::kIndex, 0)), "");
  const std::vector<Gap> unnumbered = {gap_of(0, 4, 0)};
  EXPECT_EQ(text_of(record_ranges(unnumbered, 0, Lane::kIndex, 10)), "0:0-10 ");
}

TEST(RecordRanges, EachNumberedLossMovesWhatComesBehindIt) {
  const std::vector<Gap> gaps = {gap_of(0, 1, 9), gap_of(1, 0, 100), gap_of(1, 4, 10),
                                 gap_of(1, 10, 5), gap_of(2, 3, 7)};
  EXPECT_EQ(text_of(record_ranges(gaps, 1, Lane::kIndex, 10)), "0:100-104 4:114-120 ");
  EXPECT_EQ(text_of(record_ranges(gaps, 3, Lane::kIndex, 2)), "0:0-2 ");
  EXPECT_EQ(text_of(record_ranges(gaps, 1, Lane::kDetail, 2)), "0:0-2 ") << "the other lane";
}

TEST(RecordRanges, BehindJoinedGapsNumbersAreNotExact) {
  const std::vector<Gap> gaps = {gap_of(0, 2, 1), gap_of(0, 5, 20, 4)};
  EXPECT_EQ(text_of(record_ranges(gaps, 0, Lane::kIndex, 9)), "0:0-2 2:3-6 5:26-30? ");
}

TEST(RecordRanges, PlacesThatCannotBeAreBounded) {
  const std::vector<Gap> gaps = {gap_of(0, 50, 1)};
  EXPECT_EQ(text_of(record_ranges(gaps, 0, Lane::kIndex, 9)), "0:0-9 ");
}

}  // namespace
}  // namespace collect::storage
