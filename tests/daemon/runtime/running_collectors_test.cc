#include "daemon/runtime/running_collectors.h"

#include <gmock/gmock.h>

#include <csignal>

#include "tests/child/forked_child.h"
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
  child::ForkedChild child([](const child::ForkedChild::Ready& ready) {
    const auto notice = CollectorNotice::post({1, "127.0.0.1:4001", "/a"});
    if (notice.ok()) ready();
    return notice.ok() ? child::pause_until_killed() : 1;
  });
  ASSERT_TRUE(child.was_ready());
  EXPECT_EQ(running_collectors().size(), 1u);
  child.send_signal(SIGKILL);
  child.wait();
  EXPECT_THAT(running_collectors(), IsEmpty());
  EXPECT_TRUE(std::filesystem::is_empty(own()));
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
