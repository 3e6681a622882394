#include "storage/export/id_map.h"

#include <gtest/gtest.h>

namespace collect::exports {
namespace {

TEST(IdMap, KeepsWhatIsFreeAndPositive) {
  IdMap ids;
  EXPECT_EQ(ids.take(5), 5);
  EXPECT_EQ(ids.take(5), 1'000'000'000);
  EXPECT_EQ(ids.take(0), 1'000'000'001);
  EXPECT_EQ(ids.take(1), 1);
  EXPECT_EQ(ids.take(999'999'999), 999'999'999);
  EXPECT_EQ(ids.take(1'000'000'000), 1'000'000'002);
  EXPECT_EQ(ids.take(UINT32_MAX), 1'000'000'003);
}

}  // namespace
}  // namespace collect::exports
