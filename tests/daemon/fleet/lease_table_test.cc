#include "daemon/fleet/lease_table.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>

#include "tests/daemon/fleet/postgres.h"

namespace collect::fleet {
namespace {

using test::postgres;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const Self kA{"aa", 1, "127.0.0.1:1001", "lab-a", "1.0"};
const Self kB{"bb", 1, "127.0.0.1:1002", "lab-b", "1.0"};

Holding phone(const std::string& serial) {
  Holding holding;
  holding.key = "device/" + serial;
  holding.device = serial;
  holding.device_model = "Pixel 9";
  return holding;
}

// Serial and control address of each lease, by key.
std::vector<std::string> leases() {
  return postgres().sql(
      "SELECT l.device, c.control FROM collect_leases l JOIN collect_collectors c USING "
      "(collector, "
      "epoch) ORDER BY l.key");
}

class LeaseTableTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres().missing().empty()) GTEST_SKIP() << postgres().missing();
    postgres().drop_tables();
    database_.emplace(Database::connect(postgres().url()).value());
    table_.emplace(*database_);
    expect_ok(table_->prepare());
    renew_all();
  }
  // Who is there, however long the test takes.
  void renew_all() {
    if (!is_dead(kA)) expect_ok(table_->renew(kA, {{}, 3, 2}));
    if (!is_dead(kB)) expect_ok(table_->renew(kB, {}));
  }
  bool is_dead(const Self& self) const { return dead_ == self.collector; }
  // `heartbeat`: its last one, in SQL.
  void let_die(const Self& self, const std::string& heartbeat = "now() - interval '11 s'") {
    dead_ = self.collector;
    postgres().sql("UPDATE collect_collectors SET heartbeat = " + heartbeat +
                   " WHERE collector = '" + self.collector + "'");
  }
  void revive() {
    dead_.clear();
    renew_all();
  }
  static void expect_ok(const Status& status) {
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  LeaseCounts put(const Self& self, const std::vector<Holding>& all,
                  const std::vector<Holding>& arrived = {}) {
    renew_all();
    const auto counts = table_->put(self, all, arrived);
    EXPECT_TRUE(counts.ok()) << counts.error().message;
    return counts.ok() ? *counts : LeaseCounts{};
  }
  std::vector<api::FleetCollector> list(const std::string& device = "") {
    renew_all();
    auto found = table_->list(device);
    EXPECT_TRUE(found.ok()) << found.error().message;
    return found.ok() ? *found : std::vector<api::FleetCollector>{};
  }

  std::optional<Database> database_;
  std::optional<LeaseTable> table_;
  std::string dead_;  // the collector that does not renew its entry
};

TEST_F(LeaseTableTest, TakesOverOnlyArrivingDevices) {
  EXPECT_EQ(put(kA, {phone("x")}, {phone("x")}).held, 1u);
  EXPECT_THAT(leases(), ElementsAre("x|127.0.0.1:1001"));
  EXPECT_EQ(put(kB, {phone("x")}, {phone("x")}).held, 1u);
  EXPECT_THAT(leases(), ElementsAre("x|127.0.0.1:1002"));
  // A has not noticed yet, and does not take it back.
  const LeaseCounts late = put(kA, {phone("x")});
  EXPECT_EQ(late.held, 0u);
  EXPECT_EQ(late.elsewhere, 1u);
  EXPECT_THAT(leases(), ElementsAre("x|127.0.0.1:1002"));
  // Until B gives it up.
  put(kB, {});
  EXPECT_EQ(put(kA, {phone("x")}).held, 1u);
  EXPECT_THAT(leases(), ElementsAre("x|127.0.0.1:1001"));
}

TEST_F(LeaseTableTest, ALeaseOfWhoIsNotThereAnyMoreIsFree) {
  put(kB, {phone("x")}, {phone("x")});
  EXPECT_EQ(put(kA, {phone("x")}).elsewhere, 1u);
  let_die(kB);
  EXPECT_EQ(put(kA, {phone("x")}).held, 1u);
  EXPECT_THAT(leases(), ElementsAre("x|127.0.0.1:1001"));
  // B comes back to itself, and does not take it back.
  revive();
  EXPECT_EQ(put(kB, {phone("x")}).elsewhere, 1u);
}

TEST_F(LeaseTableTest, AHeartbeatFromTheFutureKeepsNoLease) {
  put(kB, {phone("x")}, {phone("x")});
  for (const char* time : {"now() + interval '1 hour'", "'infinity'", "'-infinity'"}) {
    let_die(kB, time);
    EXPECT_EQ(put(kA, {phone("x")}).held, 1u) << time;
    revive();
    EXPECT_EQ(put(kB, {phone("x")}, {phone("x")}).held, 1u);
  }
}

TEST_F(LeaseTableTest, ARenewedLeaseKeepsItsAgeAndItsNewWords) {
  put(kA, {phone("x")}, {phone("x")});
  postgres().sql("UPDATE collect_leases SET since = now() - interval '1 hour'");
  Holding renamed = phone("x");
  renamed.device_model = "Pixel 10";
  put(kA, {renamed});
  EXPECT_EQ(postgres().value(
                "SELECT device_model, now() - since > interval '59 min' FROM collect_leases"),
            "Pixel 10|t");
  put(kB, {renamed}, {renamed});
  EXPECT_EQ(postgres().value("SELECT now() - since < interval '59 min' FROM collect_leases"), "t");
}

TEST_F(LeaseTableTest, DoesNotRewriteUnchangedLeases) {
  put(kA, {phone("x"), phone("y")}, {phone("x"), phone("y")});
  const std::string versions =
      "SELECT string_agg(xmin || ' ' || xmax, ' ' ORDER BY key) FROM collect_leases";
  const std::string before = postgres().value(versions);
  put(kA, {phone("x"), phone("y")});
  EXPECT_EQ(postgres().value(versions), before);
}

TEST_F(LeaseTableTest, LeavingGivesUpEverything) {
  put(kA, {phone("x"), phone("y")}, {phone("x"), phone("y")});
  put(kB, {phone("z")}, {phone("z")});
  dead_ = kA.collector;
  expect_ok(table_->leave(kA));
  EXPECT_THAT(leases(), ElementsAre("z|127.0.0.1:1002"));
  EXPECT_THAT(list(), SizeIs(1));
}

TEST_F(LeaseTableTest, ARestartedCollectorIsOneAndNotTwo) {
  put(kA, {phone("x")}, {phone("x")});
  dead_ = kA.collector;
  Self again = kA;
  again.epoch = 2;
  expect_ok(table_->renew(again, {}));
  expect_ok(table_->forget(again));
  EXPECT_THAT(leases(), IsEmpty());
  EXPECT_EQ(postgres().value("SELECT string_agg(collector || epoch, ' ') FROM collect_collectors"),
            "bb1 aa2");
  // With its root moved to another machine, as soon as the former run is known to be over; and with
  // a new root in the same place at once.
  Self moved = kA;
  moved.epoch = 3;
  moved.host_name = "lab-c";
  expect_ok(table_->renew(moved, {}));
  expect_ok(table_->renew(again, {}));
  expect_ok(table_->forget(moved));
  EXPECT_THAT(list(), SizeIs(3));
  postgres().sql(
      "UPDATE collect_collectors SET heartbeat = now() - interval '11 s' WHERE epoch = 2");
  expect_ok(table_->forget(moved));
  EXPECT_THAT(list(), SizeIs(2));
  Self anew = moved;
  anew.collector = "cc";
  expect_ok(table_->renew(anew, {}));
  expect_ok(table_->forget(anew));
  EXPECT_THAT(list(), SizeIs(2));
}

TEST_F(LeaseTableTest, OnlyWhoHasBeenAwayForAWeekIsForgotten) {
  postgres().sql(
      "INSERT INTO collect_collectors SELECT 'dead' || n, n, 'c', 'h' || n, 'v', 0, 0, now(), "
      "now() - "
      "make_interval(days => n) FROM generate_series(1, 3000) n");
  const auto listed = list();
  ASSERT_THAT(listed, SizeIs(kMaxListed));
  EXPECT_EQ(listed[0].host_name(), "lab-a");  // who is there comes first
  EXPECT_EQ(listed[1].host_name(), "lab-b");
  EXPECT_EQ(listed[2].state(), api::COLLECTOR_STATE_AWAY);
  expect_ok(table_->forget(kA));
  EXPECT_EQ(postgres().value("SELECT count(*) FROM collect_collectors"), "8");  // two, and six days
}

TEST_F(LeaseTableTest, AListSaysWhatEachHas) {
  Holding process = phone("x");
  process.key = "process/11";
  process.device_id = "android-7";
  process.process_name = "com.example.app";
  process.agent = "agents/3";
  process.pid = 4711;
  put(kA, {phone("x"), process}, {phone("x"), process});
  put(kB, {phone("y")}, {phone("y")});
  postgres().sql("UPDATE collect_leases SET since = since - interval '90 s' WHERE pid <> 0");
  const auto all = list();
  ASSERT_THAT(all, SizeIs(2));
  EXPECT_EQ(all[0].name(), "collectors/aa-1");
  EXPECT_EQ(all[0].state(), api::COLLECTOR_STATE_LIVE);
  EXPECT_EQ(all[0].control_address(), "127.0.0.1:1001");
  EXPECT_EQ(all[0].version(), "1.0");
  EXPECT_EQ(all[0].agents_connected(), 3u);
  EXPECT_EQ(all[0].sessions_active(), 2u);
  EXPECT_EQ(all[0].device_count(), 1u);
  EXPECT_THAT(all[0].leases(), IsEmpty());
  for (const char* word : {"x", "android-7"}) {
    const auto found = list(word);
    ASSERT_THAT(found, SizeIs(1)) << word;
    EXPECT_EQ(found[0].host_name(), "lab-a");
    const auto& lease = *found[0].leases().rbegin();
    EXPECT_EQ(lease.process_name(), "com.example.app");
    EXPECT_EQ(lease.pid(), 4711u);
    EXPECT_EQ(lease.agent(), "agents/3");
    EXPECT_NEAR(static_cast<double>(lease.age().seconds()), 95, 6);
  }
  EXPECT_THAT(list("Pixel 9"), SizeIs(2));
  EXPECT_THAT(list("pixel 9"), IsEmpty());
  EXPECT_THAT(list("' OR true --"), IsEmpty());
}

TEST_F(LeaseTableTest, WordsOfAPeerStayWords) {
  Holding hostile = phone("'); DROP TABLE collect_leases; --");
  hostile.device_model = "\"}],\"key\":\"device/y";
  hostile.process_name = "$1 \\ {\"a\":1}";
  put(kA, {hostile}, {hostile});
  const auto found = list(hostile.device);
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_EQ(found[0].leases(0).device_model(), hostile.device_model);
  EXPECT_EQ(found[0].leases(0).process_name(), hostile.process_name);
}

// Whatever others wrote there: it is shown as far as it can be, and hinders nobody.
TEST_F(LeaseTableTest, GarbageIsListedAndTakenOver) {
  postgres().sql(
      "INSERT INTO collect_collectors VALUES ('', -1, repeat('x', 100000), E'\\x1b[2J', '', -5, "
      "9223372036854775807, 'infinity', '-infinity'), ('0', 0, 'dns:///evil', '', '', 0, 0, "
      "'4714-11-24 BC', '294276-12-31')");
  postgres().sql(
      "INSERT INTO collect_leases VALUES ('device/x', '', -1, 'x', '', repeat('m', 100000), '', "
      "-7, '', 'infinity')");
  const auto all = list();
  ASSERT_THAT(all, SizeIs(4));
  for (size_t i = 2; i < 4; ++i) EXPECT_EQ(all[i].state(), api::COLLECTOR_STATE_AWAY);
  const auto who = list("x");
  ASSERT_THAT(who, SizeIs(1));
  EXPECT_EQ(who[0].control_address().size(), 512u);
  EXPECT_EQ(who[0].agents_connected(), 0u);
  EXPECT_EQ(who[0].sessions_active(), UINT32_MAX);
  EXPECT_FALSE(who[0].has_uptime());
  EXPECT_EQ(who[0].leases(0).device_model().size(), 512u);
  EXPECT_FALSE(who[0].leases(0).has_age());
  EXPECT_EQ(put(kA, {phone("x")}).held, 1u);
  expect_ok(table_->forget(kA));
  EXPECT_THAT(list(), SizeIs(2));
}

TEST_F(LeaseTableTest, PreparingIsForWhoComesFirst) {
  postgres().drop_tables();
  std::vector<Database> connections;
  for (int i = 0; i < 8; ++i) connections.push_back(Database::connect(postgres().url()).value());
  std::vector<std::thread> threads;
  for (Database& connection : connections) {
    threads.emplace_back([&connection] {
      const Status made = LeaseTable(connection).prepare();
      EXPECT_TRUE(made.ok()) << made.error().message;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(postgres().value("SELECT count(*) FROM collect_collectors"), "0");
}

}  // namespace
}  // namespace collect::fleet
