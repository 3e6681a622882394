// A program that knows several collectors, which are killed and started again at random: the parts
// that they stored, merged, hold each of its events once.
//
// COLLECT_FLEET_SECONDS (default 4) and COLLECT_FLEET_SEED (printed) say how long and which.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/upload/fake_s3.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr size_t kCollectors = 3;
constexpr size_t kThreads = 2;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

uint64_t seed() {
  const uint64_t seed = setting("COLLECT_FLEET_SEED", std::random_device()());
  std::printf("  seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Lets them record for a while: what is compared does not depend on how long.
void pause(uint64_t ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

class FleetTest : public testing::Test {
 protected:
  explicit FleetTest(const Arguments& more = {}, const Arguments& launcher = {}) {
    Arguments all{"--heartbeat-ms", "200", "--resume-ms", "1000", "--log-level", "warn"};
    all.insert(all.end(), more.begin(), more.end());
    for (size_t i = 0; i < kCollectors; ++i) {
      collectors_.push_back(std::make_unique<CollectorProcess>(
          scratch_, all, scratch_ / ("root" + std::to_string(i)), launcher));
    }
  }

  void start(const Environment& more = {}) {
    Environment environment = collectors_[0]->tracing();
    std::string all;
    for (const auto& collector : collectors_) all += (all.empty() ? "" : ",") + collector->ingest();
    environment["COLLECT_CONNECT"] = all;
    for (const auto& [name, value] : more) environment[name] = value;
    program_ = std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("chaos"), progress_, std::to_string(kThreads)},
        environment);
  }
  // How many sessions of the program there are below the root of one.
  size_t parts(size_t collector) const {
    return session_directories(collectors_[collector]->root(), program_->pid()).size();
  }
  void kill(size_t collector) {
    collectors_[collector]->process().send_signal(SIGKILL);
    (void)collectors_[collector]->process().wait(seconds(30));
  }
  // Whichever has the program now, or another one; it is away for a while, so that the program goes
  // on elsewhere.
  uint64_t kill_at_random(std::mt19937_64& random) {
    const auto end = std::chrono::steady_clock::now() +
                     seconds(static_cast<int>(setting("COLLECT_FLEET_SECONDS", 4)));
    uint64_t kills = 0;
    for (; std::chrono::steady_clock::now() < end; ++kills) {
      const size_t victim = random() % kCollectors;
      kill(victim);
      pause(random() % 300);
      collectors_[victim]->start_again();
      pause(random() % 300);
    }
    return kills;
  }
  void end_program() {
    program_->send_signal(SIGTERM);
    EXPECT_TRUE(program_->wait(seconds(60)).exited_with(0));
    progress_of_ = read_progress(progress_, kThreads);
  }
  // What is unsealed waits for its agent, which does not come; then everything is sealed.
  Arguments roots_at_rest() {
    Arguments roots;
    for (const auto& collector : collectors_) {
      if (!collector->process().running()) collector->start_again();
      for (const std::string& directory : session_directories(collector->root(), program_->pid())) {
        EXPECT_TRUE(eventually(seconds(60), [&] {
          return RecordedSession(directory).state() != "recording";
        })) << directory;
      }
      if (!session_directories(collector->root(), program_->pid()).empty()) {
        roots.push_back(collector->root());
      }
    }
    return roots;
  }
  Ending merge(Arguments roots, const std::string& into) {
    Arguments command{program("collectctl"), "merge", "--json", "-o", into};
    command.insert(command.end(), roots.begin(), roots.end());
    return run(scratch_.path(), command);
  }

  Scratch scratch_;
  std::vector<std::unique_ptr<CollectorProcess>> collectors_;
  const std::string progress_ = scratch_ / "progress";
  std::unique_ptr<ChildProcess> program_;
  std::vector<ChaosThread> progress_of_;
};

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

TEST_F(FleetTest, PartNamesItsCollectorAndItsNumbers) {
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

struct WithStore {
  upload::test::FakeS3 store;
};

class StoreFleetTest : protected WithStore, public FleetTest {
 protected:
  StoreFleetTest()
      : FleetTest({"--store", kUrl, "--store-endpoint", store.endpoint()},
                  {"/usr/bin/env", "AWS_ACCESS_KEY_ID=FAKEACCESSKEY",
                   "AWS_SECRET_ACCESS_KEY=fake/secret+key"}) {}

  // One in five of the first requests, in some way that may pass.
  void break_at_random(std::mt19937_64& random) {
    const json kinds[] = {{{"kind", "status"}, {"status", 503}, {"code", "SlowDown"}},
                          {{"kind", "status"}, {"status", 500}, {"code", "InternalError"}},
                          {{"kind", "error_200"}},
                          {{"kind", "reset"}},
                          {{"kind", "lost_answer"}},
                          {{"kind", "cut"}}};
    json faults = json::array();
    for (int at = 0; at < 1000; ++at) {
      if (random() % 5 != 0) continue;
      json fault = kinds[random() % std::size(kinds)];
      fault["at"] = at;
      faults.push_back(std::move(fault));
    }
    // What it verifies in Python would take longer than all else.
    store.set({{"faults", faults}, {"ignore", {"x-amz-checksum-crc32c"}}, {"min_part", 1}});
  }
  ptrdiff_t commits() {
    const auto objects = store.objects().get<std::map<std::string, json>>();
    return std::ranges::count_if(objects,
                                 [](const auto& one) { return one.first.ends_with("/COMMIT"); });
  }
  Ending ctl(Arguments command) {
    command.insert(command.begin(), program("collectctl"));
    return run(scratch_.path(), command,
               {{"AWS_ENDPOINT_URL", store.endpoint()},
                {"AWS_ACCESS_KEY_ID", "FAKEACCESSKEY"},
                {"AWS_SECRET_ACCESS_KEY", "fake/secret+key"}});
  }

  static constexpr char kUrl[] = "s3://traces";
};

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
