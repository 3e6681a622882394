// A program that knows several collectors, which are killed and started again at random: the parts
// that they stored, merged, hold each of its events once.
//
// COLLECT_FLEET_SECONDS (default 4) and COLLECT_FLEET_SEED (printed) say how long and which.
#include <set>

#include "tests/e2e/fleet_fixture.h"

namespace collect::e2e {
namespace {

TEST_F(FleetTest, KilledCollectorsLoseNothing) {
  std::mt19937_64 random(seed());
  start({{"COLLECT_DETAIL", "on"}});
  ASSERT_TRUE(eventually(seconds(30), [&] { return parts(0) != 0; }));
  const uint64_t kills = kill_at_random(random);
  end_program();
  const Arguments roots = roots_at_rest();
  const std::string merged = scratch_ / "merged";
  const Ending ending = merge(roots, merged);
  ASSERT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
  const json answer = json::parse(ending.output);
  ASSERT_EQ(answer["sessions"].size(), 1u) << ending.output;
  std::printf("  %llu kills, %zu parts, %llu events, %llu in several parts\n",
              static_cast<unsigned long long>(kills), answer["sessions"][0]["parts"].size(),
              static_cast<unsigned long long>(answer["sessions"][0]["events"]),
              static_cast<unsigned long long>(answer["sessions"][0]["repeated_events"]));

  const ChaosTally tally =
      check_chaos_process(merged, program_->pid(), progress_of_, ChaosEnd::kOrderly, true);
  EXPECT_EQ(tally.sessions, 1u);
  EXPECT_EQ(tally.lost, 0u);
  const std::string directory = session_directories(merged, program_->pid()).at(0);
  const Ending verified = run(scratch_.path(), {program("collectctl"), "verify", directory});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
  // Each call and return has its registers, wherever the two were stored.
  const SessionTotals totals = RecordedSession(directory).totals();
  EXPECT_EQ(totals.detail_records, totals.events);
  // The order of the parts does not matter.
  Arguments backwards(roots.rbegin(), roots.rend());
  const Ending again = merge(backwards, scratch_ / "again");
  EXPECT_TRUE(again.exited_with(0)) << again.errors;
  for (const char* file : {"thread_0/index.atf", "thread_1/index.atf", "thread_0/detail.atf"}) {
    EXPECT_EQ(
        read_text_file(directory + "/" + file),
        read_text_file(session_directories(scratch_ / "again", program_->pid()).at(0) + "/" + file))
        << file;
  }
}

TEST_F(FleetTest, APartNamesItsCollectorAndItsNumbers) {
  start();
  ASSERT_TRUE(eventually(seconds(30), [&] { return parts(0) != 0; }));
  pause(300);
  kill(0);
  ASSERT_TRUE(eventually(seconds(30), [&] { return parts(1) != 0; }));
  pause(300);
  end_program();
  const Arguments roots = roots_at_rest();
  ASSERT_EQ(roots.size(), 2u);
  std::set<std::string> ids;
  for (const std::string& root : roots) {
    const RecordedSession part(session_directories(root, program_->pid()).at(0));
    const json& collector = part.manifest()["collector"];
    EXPECT_EQ(collector["id"].get<std::string>() + "\n", read_text_file(root + "/.collector_id"));
    EXPECT_GT(collector["epoch"].get<uint64_t>(), 1'600'000'000'000u);
    ids.insert(collector["id"]);
  }
  EXPECT_EQ(ids.size(), 2u);
  // The second one begins where the first one's acknowledgements ended.
  const RecordedSession later(session_directories(roots[1], program_->pid()).at(0));
  for (const json& thread : later.manifest()["threads"]) {
    ASSERT_EQ(thread["index_ranges"].size(), 1u) << thread;
    EXPECT_EQ(thread["index_ranges"][0][0], thread["lost_events"]);
    EXPECT_EQ(thread["index_ranges"][0][1], thread["events"]);
  }
  // One part alone says what it lacks, and where that may be.
  const Ending alone = merge({roots[1]}, scratch_ / "alone");
  EXPECT_TRUE(alone.exited_with(1)) << alone.output << alone.errors;
  const json missing = json::parse(alone.output)["sessions"][0]["missing"];
  ASSERT_EQ(missing.size(), kThreads) << missing;
  EXPECT_NE(missing[0]["what"].get<std::string>().find("in none of the parts"), std::string::npos);
  const Ending whole = merge(roots, scratch_ / "whole");
  EXPECT_TRUE(whole.exited_with(0)) << whole.output << whole.errors;
}

// ---- and a store

TEST_F(StoreFleetTest, StoreHoldsEveryEventOfTheProgram) {
  std::mt19937_64 random(seed());
  break_at_random(random);
  start({{"COLLECT_DETAIL", "on"}});
  ASSERT_TRUE(eventually(seconds(30), [&] { return parts(0) != 0; }));
  const uint64_t kills = kill_at_random(random);
  end_program();
  ptrdiff_t all_parts = 0;
  for (const std::string& root : roots_at_rest()) {
    all_parts += std::ssize(session_directories(root, program_->pid()));
  }
  ASSERT_TRUE(eventually(seconds(120), [&] { return commits() == all_parts; }))
      << commits() << " of " << all_parts;
  store.set({{"faults", json::array()}});
  // Nothing of what the collectors have on their disks is looked at from here on.
  const Ending fetched = ctl({"download", kUrl, "-o", scratch_ / "fetched"});
  ASSERT_TRUE(fetched.exited_with(0)) << fetched.errors;
  const std::string merged = scratch_ / "merged";
  const Ending ending = merge({scratch_ / "fetched"}, merged);
  ASSERT_TRUE(ending.exited_with(0)) << ending.output << ending.errors;
  const ChaosTally tally =
      check_chaos_process(merged, program_->pid(), progress_of_, ChaosEnd::kOrderly, true);
  std::printf("  %llu kills, %td parts, %llu events\n", static_cast<unsigned long long>(kills),
              all_parts, static_cast<unsigned long long>(tally.events));
  EXPECT_EQ(tally.sessions, 1u);
  EXPECT_EQ(tally.lost, 0u);
}

}  // namespace
}  // namespace collect::e2e
