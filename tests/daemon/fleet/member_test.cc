#include "daemon/fleet/member.h"

#include <gmock/gmock.h>

#include <atomic>
#include <future>

#include "tests/daemon/fleet/postgres.h"

namespace collect::fleet {
namespace {

using test::postgres;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kPatience{40};

template <class Condition>
bool eventually(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return condition();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

Result<std::vector<api::FleetCollector>> ask(Member& member, const std::string& device = "") {
  std::promise<Result<std::vector<api::FleetCollector>>> promise;
  member.list(device, [&promise](auto answer) { promise.set_value(std::move(answer)); });
  return promise.get_future().get();
}

// A member with devices that a test gives it.
class Played {
 public:
  Played(const std::string& name, const std::string& url)
      : member_(url, [this] {
          const std::lock_guard lock(mutex_);
          return holdings_;
        }) {
    EXPECT_TRUE(member_.start({name, 1, "127.0.0.1:7711", "host-" + name, "1"}).ok());
  }
  void has(const std::vector<std::string>& devices, uint64_t arrival = 0) {
    {
      const std::lock_guard lock(mutex_);
      holdings_.all.clear();
      for (const std::string& device : devices) {
        Holding& holding = holdings_.all.emplace_back();
        holding.key = "device/" + device;
        holding.device = device;
        holding.arrival = arrival;
      }
    }
    member_.wake();
  }
  Member& operator*() { return member_; }
  Member* operator->() { return &member_; }
  bool connected() const { return member_.status().connected(); }

 private:
  std::mutex mutex_;
  Holdings holdings_;
  Member member_;
};

std::vector<std::string> holders() {
  return postgres().sql("SELECT key, collector FROM collect_leases ORDER BY key");
}

class MemberTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres().missing().empty()) GTEST_SKIP() << postgres().missing();
    postgres().drop_tables();
  }
};

TEST_F(MemberTest, JoinsHasItsDevicesAndLeaves) {
  Played member("a", postgres().url());
  member.has({"x", "y"});
  EXPECT_TRUE(eventually([&] { return member->status().leases() == 2; }));
  EXPECT_EQ(member->status().status(), "");
  EXPECT_THAT(holders(), ElementsAre("device/x|a", "device/y|a"));
  member.has({"y"});
  EXPECT_TRUE(eventually([] { return holders() == std::vector<std::string>{"device/y|a"}; }));
  const auto found = ask(*member, "y");
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 1u);
  EXPECT_EQ(found->at(0).host_name(), "host-a");
  EXPECT_TRUE(member->stop(kPatience));
  EXPECT_THAT(holders(), IsEmpty());
  EXPECT_EQ(ask(*member).code(), Code::kUnavailable);
}

TEST_F(MemberTest, ADeviceIsWithWhomItCameToLast) {
  Played a("a", postgres().url()), b("b", postgres().url());
  EXPECT_TRUE(eventually([&] { return a.connected() && b.connected(); }));
  a.has({"x"});
  EXPECT_TRUE(eventually([&] { return a->status().leases() == 1; }));
  b.has({"x"});
  EXPECT_TRUE(eventually([&] { return b->status().leases() == 1; }));
  EXPECT_TRUE(eventually([&] { return a->status().leases_elsewhere() == 1; }));
  EXPECT_EQ(a->status().leases(), 0u);
  EXPECT_THAT(holders(), ElementsAre("device/x|b"));
  // It comes back to a, which never noticed that it was away.
  a.has({"x"}, 1);
  EXPECT_TRUE(eventually([&] { return a->status().leases() == 1; }));
  EXPECT_TRUE(eventually([&] { return b->status().leases_elsewhere() == 1; }));
  // And a stops.
  EXPECT_TRUE(a->stop(kPatience));
  EXPECT_TRUE(eventually([&] { return b->status().leases() == 1; }));
  EXPECT_THAT(holders(), ElementsAre("device/x|b"));
}

TEST_F(MemberTest, ADatabaseThatGoesAndComesAgainIsFoundAgain) {
  Played a("a", postgres().url()), b("b", postgres().url());
  a.has({"x"});
  EXPECT_TRUE(eventually([&] { return a->status().leases() == 1 && b.connected(); }));
  postgres().crash();
  EXPECT_TRUE(eventually([&] { return !a.connected() && !b.connected(); }));
  EXPECT_THAT(a->status().status(), HasSubstr("the fleet's database: "));
  const auto refused = ask(*a);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.error().message, HasSubstr("the fleet's database: "));
  // Meanwhile the device moves.
  a.has({});
  b.has({"x"});
  postgres().start();
  EXPECT_TRUE(eventually([&] { return a.connected() && b->status().leases() == 1; }));
  EXPECT_TRUE(eventually([] { return holders() == std::vector<std::string>{"device/x|b"}; }));
  EXPECT_GT(a->status().failures(), 0u);
}

TEST_F(MemberTest, ADatabaseThatLostItsTablesGetsThemAgain) {
  Played a("a", postgres().url());
  a.has({"x"});
  EXPECT_TRUE(eventually([&] { return a->status().leases() == 1; }));
  postgres().drop_tables();
  EXPECT_TRUE(eventually([&] { return a->status().failures() > 0; }));
  EXPECT_TRUE(eventually([&] { return a.connected(); }));
  EXPECT_THAT(holders(), ElementsAre("device/x|a"));
  // Rows that somebody removed come back.
  postgres().sql("DELETE FROM collect_collectors");
  EXPECT_TRUE(eventually([] { return holders() == std::vector<std::string>{"device/x|a"}; }));
}

TEST_F(MemberTest, AnswersQuestionsWhileTheDatabaseHangs) {
  Played a("a", postgres().url());
  EXPECT_TRUE(eventually([&] { return a.connected(); }));
  postgres().freeze();
  std::atomic<size_t> refused = 0, full = 0;
  for (size_t i = 0; i < 3 * kMaxQuestions; ++i) {
    a->list("", [&](const auto& answer) {
      ++refused;
      if (answer.code() == Code::kLimit) ++full;
    });
  }
  // At most a queue full was taken off before the database was asked for the first of them.
  EXPECT_GE(full, kMaxQuestions);
  EXPECT_TRUE(eventually([&] { return refused == 3 * kMaxQuestions; }));
  // It does not wait for a database that answers nothing.
  (void)a->stop(std::chrono::milliseconds(10));
  postgres().thaw();
}

TEST(MemberWithoutDatabaseTest, SaysSoAndStops) {
  Played a("a", "postgresql://x@127.0.0.1:1/fleet");
  EXPECT_TRUE(eventually([&] { return a->status().failures() > 1; }));
  EXPECT_FALSE(a.connected());
  EXPECT_THAT(a->status().status(), HasSubstr("127.0.0.1"));
  EXPECT_EQ(ask(*a).code(), Code::kUnavailable);
  EXPECT_TRUE(a->stop(kPatience));
}

TEST(MemberWithoutDatabaseTest, NeverStartedItRefusesAndStops) {
  Member member("postgresql://x@127.0.0.1:1/fleet", [] { return Holdings(); });
  EXPECT_EQ(ask(member).code(), Code::kUnavailable);
  EXPECT_TRUE(member.stop(std::chrono::milliseconds(0)));
}

}  // namespace
}  // namespace collect::fleet
