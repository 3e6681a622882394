// The space that is put aside for sealing.
#include "storage/session/space_guard.h"

#include "tests/storage/fault_fs.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class SessionReserveTest : public ::testing::Test {
 protected:
  uint64_t bytes() const {
    const std::string path = root_.path() + "/reserve.space";
    return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
  }

  TemporaryDirectory root_;
  FaultFs fs_;
  SessionReserve reserve_{fs_, root_.path()};
};

TEST_F(SessionReserveTest, GrowsAndIsGivenBackWhole) {
  ASSERT_OK(reserve_.release());  // there is none
  ASSERT_OK(reserve_.grow_to(1000));
  EXPECT_EQ(bytes(), 1000u);
  ASSERT_OK(reserve_.grow_to(5000));
  EXPECT_EQ(bytes(), 5000u);
  const uint64_t before = fs_.changes();
  ASSERT_OK(reserve_.grow_to(5000));
  ASSERT_OK(reserve_.grow_to(10));
  EXPECT_EQ(bytes(), 5000u);
  EXPECT_EQ(fs_.changes(), before) << "nothing is written for what is there";
  ASSERT_OK(reserve_.release());
  EXPECT_FALSE(std::filesystem::exists(root_.path() + "/reserve.space"));
  // A session that is opened again puts it aside again.
  ASSERT_OK(reserve_.grow_to(2000));
  EXPECT_EQ(bytes(), 2000u);
}

// What could not be written is asked for again, so that it is there in the end.
TEST_F(SessionReserveTest, FullDiskIsSaidAndTriedAgain) {
  ASSERT_OK(reserve_.grow_to(1000));
  fs_.set_plan({.capacity = 3000});
  EXPECT_EQ(reserve_.grow_to(9000).code(), Code::kNoSpace);
  fs_.set_plan({});
  ASSERT_OK(reserve_.grow_to(9000));
  EXPECT_EQ(bytes(), 9000u);
}

}  // namespace
}  // namespace collect::storage::test
