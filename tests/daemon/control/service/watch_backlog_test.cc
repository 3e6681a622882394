#include "daemon/control/service/watch_backlog.h"

#include <gtest/gtest.h>

namespace collect::control {
namespace {

v1::AgentEvent event(v1::ChangeKind kind, const std::string& name, uint32_t reconnects) {
  v1::AgentEvent made;
  made.set_kind(kind);
  made.mutable_agent()->set_name(name);
  made.mutable_agent()->set_reconnects(reconnects);
  return made;
}

v1::Agent agent(const std::string& name, uint32_t reconnects) {
  return event(v1::CHANGE_KIND_PRESENT, name, reconnects).agent();
}

TEST(WatchBacklogTest, SlowClientGetsTheNewestStateOfEachAgent) {
  AgentBacklog backlog;
  backlog.put_present({});
  EXPECT_EQ(backlog.take().kind(), v1::CHANGE_KIND_SYNCED);
  backlog.put(event(v1::CHANGE_KIND_ADDED, "a", 0));
  backlog.put(event(v1::CHANGE_KIND_ADDED, "b", 0));
  for (uint32_t i = 1; i <= 100'000; ++i) backlog.put(event(v1::CHANGE_KIND_CHANGED, "a", i));
  const v1::AgentEvent first = backlog.take();
  EXPECT_EQ(first.agent().name(), "a");
  EXPECT_EQ(first.agent().reconnects(), 100'000u);
  EXPECT_EQ(first.kind(), v1::CHANGE_KIND_ADDED);  // the client has not heard of it before
  EXPECT_EQ(backlog.take().agent().name(), "b");
  EXPECT_TRUE(backlog.empty());
}

TEST(WatchBacklogTest, EventWinsOverAnOlderSnapshot) {
  AgentBacklog backlog;
  backlog.put(event(v1::CHANGE_KIND_CHANGED, "a", 5));
  backlog.put(event(v1::CHANGE_KIND_REMOVED, "gone", 1));
  EXPECT_EQ(backlog.take().agent().reconnects(), 5u);
  backlog.put_present({agent("a", 4), agent("b", 0), agent("gone", 0)});
  EXPECT_EQ(backlog.take().kind(), v1::CHANGE_KIND_REMOVED);
  const v1::AgentEvent last = backlog.take();
  EXPECT_EQ(last.agent().name(), "b");
  EXPECT_EQ(last.kind(), v1::CHANGE_KIND_PRESENT);
  EXPECT_EQ(backlog.take().kind(), v1::CHANGE_KIND_SYNCED);
  EXPECT_TRUE(backlog.empty());
}

TEST(WatchBacklogTest, RemovalIsNotTurnedIntoAnArrival) {
  AgentBacklog backlog;
  backlog.put_present({agent("a", 0)});
  backlog.put(event(v1::CHANGE_KIND_REMOVED, "a", 0));
  EXPECT_EQ(backlog.take().kind(), v1::CHANGE_KIND_REMOVED);
}

TEST(WatchBacklogTest, TooManyAgentsOverflow) {
  AgentBacklog backlog;
  backlog.put_present({});
  for (size_t i = 0; i < kMaxBacklogAgents; ++i) {
    backlog.put(event(v1::CHANGE_KIND_ADDED, std::to_string(i), 0));
  }
  EXPECT_FALSE(backlog.overflowed());
  backlog.put(event(v1::CHANGE_KIND_CHANGED, "0", 1));  // one that waits already
  EXPECT_FALSE(backlog.overflowed());
  backlog.put(event(v1::CHANGE_KIND_ADDED, "one more", 0));
  EXPECT_TRUE(backlog.overflowed());
}

TEST(WatchBacklogTest, OneThingKeepsItsNewestState) {
  NewestBacklog<v1::Session> backlog;
  EXPECT_TRUE(backlog.empty());
  EXPECT_FALSE(backlog.ever_put());
  v1::Session session;
  session.set_events(1);
  backlog.put(session);
  session.set_events(2);
  backlog.put(session);
  EXPECT_EQ(backlog.take().events(), 2u);
  EXPECT_TRUE(backlog.empty());
  EXPECT_TRUE(backlog.ever_put());
}

}  // namespace
}  // namespace collect::control
