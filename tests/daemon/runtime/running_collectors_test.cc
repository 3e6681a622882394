#include "daemon/runtime/running_collectors.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "tests/daemon/runtime/runtime_fixture.h"

namespace collect::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RunningCollectorsTest : public RuntimeTest {};

TEST_F(RunningCollectorsTest, AreKnownAsLongAsTheirNotice) {
  EXPECT_THAT(running_collectors(), IsEmpty());
  const RunningCollector first{11, "127.0.0.1:4001", "/traces \"a\""};
  const RunningCollector second{12, "unix:/b", "/b"};
  auto one = CollectorNotice::post(first);
  ASSERT_TRUE(one.ok()) << one.error().message;
  const CollectorNotice moved = std::move(*one);
  {
    const auto other = CollectorNotice::post(second);
    ASSERT_TRUE(other.ok());
    EXPECT_THAT(running_collectors(), ElementsAre(first, second));
  }
  EXPECT_THAT(running_collectors(), ElementsAre(first));
}

// Its number may be another process's by now.
TEST_F(RunningCollectorsTest, OneThatWasKilledIsRemoved) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto notice = CollectorNotice::post({1, "127.0.0.1:4001", "/a"});
    (void)!::write(ready[1], notice.ok() ? "y" : "n", 1);
    ::pause();
  }
  char posted = 0;
  ASSERT_EQ(::read(ready[0], &posted, 1), 1);
  ASSERT_EQ(posted, 'y');
  EXPECT_EQ(running_collectors().size(), 1u);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_THAT(running_collectors(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(own()));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(RunningCollectorsTest, WhatWasLeftHalfMadeIsRemoved) {
  put(".new-1-0", "{");
  EXPECT_THAT(running_collectors(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(own()));
}

TEST_F(RunningCollectorsTest, PassesByWhatNoCollectorWrote) {
  const auto directory = RuntimeDirectory::make();
  ASSERT_TRUE(directory.ok());
  std::vector<Descriptor> held;
  for (const char* text :
       {"", "{", "[]", "7", "{\"control\":\"127.0.0.1:1\"}", "{\"control\":1,\"root\":2}",
        "{\"control\":\"x\",\"root\":\"below\"}", "{\"control\":\"\",\"root\":\"/a\"}"}) {
    auto published = directory->publish("collector-" + std::to_string(held.size()), text);
    ASSERT_TRUE(published.ok());
    held.push_back(std::move(*published));
  }
  EXPECT_THAT(running_collectors(), IsEmpty());
}

TEST_F(RunningCollectorsTest, ReturnsAtMostItsLimit) {
  std::vector<CollectorNotice> notices;
  for (size_t i = 0; i <= kMaxRunningCollectors; ++i) {
    auto notice = CollectorNotice::post({1, "127.0.0.1:" + std::to_string(1000 + i), "/a"});
    ASSERT_TRUE(notice.ok());
    notices.push_back(std::move(*notice));
  }
  EXPECT_EQ(running_collectors().size(), kMaxRunningCollectors);
}

}  // namespace
}  // namespace collect::runtime
