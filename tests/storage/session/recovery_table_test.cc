// STORAGE.md "Recovery", row by row: each state is made for real and recovered; a second recovery
// finds nothing to do.
#include "tests/storage/found_states.h"
#include "tests/storage/session_fixture.h"

namespace collect::storage::test {
namespace {

class RecoveryTableTest : public SessionTest, public ::testing::WithParamInterface<FoundState> {
 protected:
  const std::string directory_ = GetParam().make(root.path());
};

TEST_P(RecoveryTableTest, IsRecovered) {
  const FoundState& found = GetParam();
  auto recovered = recover_session(fs, options(), directory_);
  if (found.removed) {
    ASSERT_FALSE(recovered.ok());
    EXPECT_EQ(recovered.code(), Code::kNotFound);
  } else {
    ASSERT_OK(recovered);
    EXPECT_EQ(recovered->state, found.state);
    EXPECT_EQ(recovered->totals.events, found.events);
    EXPECT_EQ(!recovered->problems.empty(), found.has_problems);
  }
  expect_recovered_as(found, directory_);
  if (found.removed) return;
  const std::vector<uint8_t> manifest = read_file(directory_ + "/manifest.json");
  auto again = recover_session(fs, options(), directory_);
  ASSERT_OK(again);
  EXPECT_TRUE(again->was_sealed);
  EXPECT_EQ(read_file(directory_ + "/manifest.json"), manifest);
}

// Who comes back to a session finds it recording, or is informed why not; and nothing is made
// worse.
TEST_P(RecoveryTableTest, IsResumedOrRefusedWithAReason) {
  const FoundState& found = GetParam();
  auto resumed = Session::resume(fs, options(), directory_);
  if (!resumed.ok()) {
    EXPECT_TRUE(resumed.code() == Code::kCancelled || resumed.code() == Code::kNotFound ||
                resumed.code() == Code::kDamaged)
        << to_string(resumed.error());
  } else {
    EXPECT_EQ((*resumed)->totals().events, found.events);
    ASSERT_OK((*resumed)->commit());
    resumed->reset();
  }
  auto recovered = recover_session(fs, options(), directory_);
  EXPECT_EQ(recovered.ok(), !found.removed);
  if (!recovered.ok()) return;
  EXPECT_EQ(recovered->totals.events, found.events);
}

// A daemon resumes what was being recorded, and then no one comes: what is missing is counted too,
// also when that daemon is killed and the next one seals.
TEST_P(RecoveryTableTest, IsSealedWhenItsAgentDoesNotComeBack) {
  const FoundState& found = GetParam();
  for (int lives = 0; lives < 2; ++lives) {
    auto resumed = Session::resume(fs, options(), directory_);
    if (!resumed.ok()) return;
    ASSERT_OK((*resumed)->commit());
  }
  auto resumed = Session::resume(fs, options(), directory_);
  ASSERT_OK(resumed);
  ASSERT_OK((*resumed)->seal(SessionState::kRecovered, "its agent did not come back"));
  expect_recovered_as(found, directory_);
}

INSTANTIATE_TEST_SUITE_P(Rows, RecoveryTableTest, ::testing::ValuesIn(found_states()),
                         [](const auto& row) { return std::string(row.param.row); });

}  // namespace
}  // namespace collect::storage::test
