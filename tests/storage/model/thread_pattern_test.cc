#include "storage/model/thread_pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::storage {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<ThreadIdentity> kThreads = {
    {0, 4711, "main"}, {1, 4712, "worker 1"}, {2, 4713, "worker 2"}, {3, 4712, ""}};

TEST(ThreadPatternTest, NumberIsTheOperatingSystemsId) {
  EXPECT_THAT(*select_threads({"4711"}, kThreads), ElementsAre(0));
  EXPECT_THAT(*select_threads({"4712"}, kThreads), ElementsAre(1, 3)) << "given twice";
  EXPECT_EQ(select_threads({"0"}, kThreads).code(), Code::kNotFound) << "no index";
}

TEST(ThreadPatternTest, DirectoryIsOneThread) {
  EXPECT_THAT(*select_threads({"thread_0"}, kThreads), ElementsAre(0));
  EXPECT_THAT(*select_threads({"thread_3"}, kThreads), ElementsAre(3));
  // A running thread has no directory that is known.
  EXPECT_EQ(select_threads({"thread_0"}, {{std::nullopt, 0, "main"}}).code(), Code::kNotFound);
}

TEST(ThreadPatternTest, NameIsAPattern) {
  EXPECT_THAT(*select_threads({"name=worker*"}, kThreads), ElementsAre(1, 2));
  EXPECT_THAT(*select_threads({"name=main"}, kThreads), ElementsAre(0));
  EXPECT_EQ(select_threads({"name=work"}, kThreads).code(), Code::kNotFound);
}

TEST(ThreadPatternTest, WordsAddUpInOrderOfTheThreads) {
  EXPECT_THAT(*select_threads({"4713", "thread_0", "name=main"}, kThreads), ElementsAre(0, 2));
}

TEST(ThreadPatternTest, UnknownWordIsAnErrorThatListsThreads) {
  const auto missing = select_threads({"4711", "99"}, kThreads);
  ASSERT_EQ(missing.code(), Code::kNotFound);
  EXPECT_EQ(missing.error().message,
            "no thread is \"99\"; there is 4711 (thread_0, main), 4712 (thread_1, worker 1), 4713 "
            "(thread_2, worker 2), 4712 (thread_3)");
  EXPECT_THAT(select_threads({"99"}, {}).error().message, HasSubstr("there are no threads"));
  const std::vector<ThreadIdentity> many(30, {std::nullopt, 1, ""});
  EXPECT_THAT(select_threads({"99"}, many).error().message, HasSubstr(" and 22 more"));
  const std::vector<ThreadIdentity> all(8, {std::nullopt, 1, ""});
  EXPECT_EQ(select_threads({"99"}, all).error().message,
            "no thread is \"99\"; there is 1, 1, 1, 1, 1, 1, 1, 1");
}

TEST(ThreadPatternTest, EverythingElseIsNoThread) {
  for (const char* word : {"", "main", "thread_", "thread_x", "name=", "-1", "4711x", "4294967296",
                           "thread_4294967296", "0x10"}) {
    EXPECT_EQ(ThreadPattern::parse(word).code(), Code::kInvalidArgument) << word;
  }
}

}  // namespace
}  // namespace collect::storage
