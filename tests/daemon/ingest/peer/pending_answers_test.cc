#include "daemon/ingest/peer/agent_commands.h"

#include <gmock/gmock.h>

namespace collect::ingest {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr milliseconds kTimeout{10'000};

class PendingAnswersTest : public testing::Test {
 protected:
  void add(uint64_t key) {
    const size_t at = answers_.size();
    answers_.emplace_back();
    pending_.add(
        key,
        [this, at](const Result<int>& result) {
          answers_[at].push_back(result.ok() ? std::to_string(*result) : result.error().message);
        },
        now_ + kTimeout);
  }

  PendingAnswers<int> pending_;
  const SteadyTime now_ = std::chrono::steady_clock::now();
  std::vector<std::vector<std::string>> answers_;  // of each that was added
};

TEST_F(PendingAnswersTest, EachIsAnsweredOnce) {
  add(1);
  add(2);
  EXPECT_EQ(pending_.size(), 2u);
  pending_.answer(2, 22);
  pending_.answer(2, 23);   // again
  pending_.answer(99, 99);  // no one asked
  EXPECT_EQ(pending_.size(), 1u);
  pending_.fail_late(now_ + 2 * kTimeout, "too late");
  pending_.fail_all("the link ended");
  pending_.answer(1, 11);
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("too late"), ElementsAre("22")));
  EXPECT_EQ(pending_.size(), 0u);
}

TEST_F(PendingAnswersTest, AllWithOneKeyAreAnsweredTogether) {
  add(7);
  add(8);
  add(7);
  pending_.answer(7, 1);
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("1"), IsEmpty(), ElementsAre("1")));
}

TEST_F(PendingAnswersTest, DeadlinesAreEachOnesOwn) {
  add(1);
  pending_.add(2, [](const Result<int>&) { ADD_FAILURE(); }, now_ + 3 * kTimeout);
  pending_.fail_late(now_ + kTimeout - milliseconds{1}, "too late");
  EXPECT_THAT(answers_, ElementsAre(IsEmpty()));
  pending_.fail_late(now_ + kTimeout, "too late");
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("too late")));
  EXPECT_EQ(pending_.size(), 1u);
}

// The receiver of an answer may ask again.
TEST_F(PendingAnswersTest, AnswerMayAddAnother) {
  pending_.add(1, [this](const Result<int>&) { add(1); }, now_ + kTimeout);
  pending_.fail_all("the link ended");
  ASSERT_EQ(answers_.size(), 1u);
  EXPECT_THAT(answers_[0], IsEmpty());
  pending_.fail_all("the link ended again");
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("the link ended again")));
}

}  // namespace
}  // namespace collect::ingest
