#include "daemon/ingest/pending_commands.h"

#include <gmock/gmock.h>

#include "daemon/ingest/limits.h"

namespace collect::ingest {
namespace {

using testing::ElementsAre;

class PendingCommandsTest : public testing::Test {
 protected:
  uint64_t add() {
    const size_t at = answers_.size();
    answers_.emplace_back();
    return commands_.add(
        [this, at](Result<wire::CommandResult> result) {
          answers_[at].push_back(result.ok() ? "done" : result.error().message);
        },
        now_);
  }
  void answer(uint64_t id) {
    wire::CommandResult result;
    result.set_command_id(id);
    commands_.take(result);
  }

  PendingCommands commands_;
  const SteadyTime now_ = std::chrono::steady_clock::now();
  std::vector<std::vector<std::string>> answers_;  // of each command
};

TEST_F(PendingCommandsTest, EachIsAnsweredOnce) {
  const uint64_t first = add();
  const uint64_t second = add();
  EXPECT_NE(first, second);
  answer(second);
  answer(second);  // again
  answer(99);      // nobody asked
  commands_.fail_late(now_ + 2 * kCommandTimeout, "too late");
  commands_.fail_all("the link ended");
  answer(first);
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("too late"), ElementsAre("done")));
}

TEST_F(PendingCommandsTest, DeadlinesAreEachCommandsOwn) {
  (void)add();
  commands_.fail_late(now_ + kCommandTimeout - milliseconds{1}, "too late");
  EXPECT_THAT(answers_, ElementsAre(testing::IsEmpty()));
  commands_.fail_late(now_ + kCommandTimeout, "too late");
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("too late")));
}

TEST_F(PendingCommandsTest, FullAtTheLimit) {
  for (size_t at = 0; at + 1 < kMaxPendingCommands; ++at) (void)add();
  EXPECT_FALSE(commands_.is_full());
  const uint64_t last = add();
  EXPECT_TRUE(commands_.is_full());
  answer(last);
  EXPECT_FALSE(commands_.is_full());
}

// Whoever is answered may ask again.
TEST_F(PendingCommandsTest, AnAnswerMayAddACommand) {
  (void)commands_.add([this](const Result<wire::CommandResult>&) { (void)add(); }, now_);
  commands_.fail_all("the link ended");
  EXPECT_EQ(answers_.size(), 1u);
  commands_.fail_all("the link ended again");
  EXPECT_THAT(answers_, ElementsAre(ElementsAre("the link ended again")));
}

}  // namespace
}  // namespace collect::ingest
