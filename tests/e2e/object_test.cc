// durability = object: what an agent was acknowledged is in the store, whatever becomes of the
// collector and its disk. The program's own numbering says what there is to be.
#include "tests/e2e/fleet_fixture.h"

namespace collect::e2e {
namespace {

class ObjectTest : public StoreFleetTest {
 protected:
  ObjectTest() : StoreFleetTest("object") {
    store.set({{"ignore", {"x-amz-checksum-crc32c"}}, {"min_part", 1}});
  }
  // Requests that came to their end in the store.
  ptrdiff_t stored_requests() {
    return count_keys([](const std::string& key) { return key.ends_with(".end"); });
  }
  void lose_machine(size_t collector) {
    kill(collector);
    std::filesystem::remove_all(collectors_[collector]->root());
  }
  void refuse_segments(bool refused) {
    json faults = json::array();
    if (refused) {
      faults.push_back({{"at", 0},
                        {"to", 1'000'000'000},
                        {"key", "/segments/"},
                        {"kind", "status"},
                        {"status", 503},
                        {"code", "SlowDown"}});
    }
    store.set({{"faults", faults}, {"ignore", {"x-amz-checksum-crc32c"}}, {"min_part", 1}});
  }
  // Everything that is on the disks of collectors that live is committed.
  void wait_for_commits() {
    ptrdiff_t all = 0;
    for (const std::string& root : roots_at_rest()) {
      all += std::ssize(session_directories(root, program_->pid()));
    }
    ASSERT_TRUE(eventually(seconds(120), [&] { return commits() == all; }))
        << commits() << " of " << all;
  }
  // From the store alone; the sessions of the answer.
  json download(const std::string& into) {
    const Ending fetched = ctl({"download", kUrl, "--json", "-o", into});
    EXPECT_TRUE(fetched.exited_with(0)) << fetched.output << fetched.errors;
    return json::parse(fetched.output)["sessions"];
  }
  void expect_all_in(const std::string& directory) {
    for (const std::string& one : session_directories(directory, program_->pid())) {
      const Ending verified =
          run(scratch_.path(), {program("collectctl"), "verify", "--allow-incomplete", one});
      EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    }
    const std::string merged = scratch_ / "merged";
    const Ending ending = merge({directory}, merged);
    ASSERT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
    const ChaosTally tally =
        check_chaos_process(merged, program_->pid(), progress_of_, ChaosEnd::kOrderly, true);
    EXPECT_EQ(tally.sessions, 1u);
    EXPECT_EQ(tally.lost, 0u);
    EXPECT_GT(tally.events, 0u);
  }
};

TEST_F(ObjectTest, AcknowledgedEventsOutliveTheCollectorAndItsDisk) {
  start({{"COLLECT_DETAIL", "on"}});
  ASSERT_TRUE(eventually(seconds(60), [&] { return stored_requests() >= 5; }));
  lose_machine(0);
  ASSERT_TRUE(eventually(seconds(60), [&] { return parts(1) + parts(2) != 0; }));
  pause(300);
  end_program();
  wait_for_commits();
  const json sessions = download(scratch_ / "fetched");
  uint64_t rebuilt = 0;
  for (const json& one : sessions) {
    if (!one.contains("rebuilt")) continue;
    ++rebuilt;
    EXPECT_EQ(one["rebuilt"]["state"], "recovered");
    EXPECT_GT(one["rebuilt"]["events"].get<uint64_t>(), 0u);
    EXPECT_GT(one["rebuilt"]["segments"].get<uint64_t>(), 1u);
    ASSERT_EQ(one["rebuilt"]["threads"].size(), kThreads);
    EXPECT_GT(one["rebuilt"]["threads"][0]["events_to"].get<uint64_t>(), 0u);
  }
  EXPECT_EQ(rebuilt, 1u) << sessions;
  expect_all_in(scratch_ / "fetched");
}

TEST_F(ObjectTest, DoesNotAcknowledgeWhileTheStoreIsAway) {
  refuse_segments(true);
  start();
  ASSERT_TRUE(eventually(seconds(60), [&] { return parts(0) != 0; }));
  pause(1'500);
  // So the program still has all of it, and nothing is lost with the machine.
  lose_machine(0);
  EXPECT_EQ(stored_requests(), 0);
  ASSERT_TRUE(eventually(seconds(60), [&] { return parts(1) + parts(2) != 0; }));
  refuse_segments(false);
  ASSERT_TRUE(eventually(seconds(60), [&] { return stored_requests() >= 3; }));
  end_program();
  wait_for_commits();
  for (const json& one : download(scratch_ / "fetched")) EXPECT_FALSE(one.contains("rebuilt"));
  expect_all_in(scratch_ / "fetched");
  // What COMMIT supersedes is gone.
  EXPECT_TRUE(eventually(seconds(60), [&] {
    return count_keys([](const std::string& key) { return key.find("/segments/") != key.npos; }) ==
           0;
  }));
}

TEST_F(ObjectTest, ACollectorThatIsKilledAndComesBackGoesOn) {
  std::mt19937_64 random(seed());
  break_at_random(random);
  start();
  ASSERT_TRUE(eventually(seconds(60), [&] { return stored_requests() >= 3; }));
  (void)kill_at_random(random);
  refuse_segments(false);
  end_program();
  wait_for_commits();
  (void)download(scratch_ / "fetched");
  expect_all_in(scratch_ / "fetched");
}

}  // namespace
}  // namespace collect::e2e
