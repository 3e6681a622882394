// A daemon that works for a long time: one program records all along, others come and go, sessions
// are listed, watched, downloaded and removed, links are cut. Its memory, its descriptors and those
// of the program that stays do not grow. COLLECT_SOAK_SECONDS (default 20) says how long.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

constexpr size_t kThreads = 2;
constexpr char kIterations[] = "50000";
// Of the daemon after the warm-up: what allocators and caches of libraries still take.
constexpr uint64_t kMayGrow = 16u << 20;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

size_t open_descriptors(pid_t pid) {
  std::error_code none;
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(pid) + "/fd", none);
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

class Soak : public testing::Test {
 protected:
  Soak()
      : collector_(scratch_, {"--heartbeat-ms", "200", "--rtc-roll-bytes", "4194304",
                              "--rtc-budget-bytes", "8388608", "--log-level", "warn"}),
        proxy_(collector_.ingest_port()) {}

  Environment environment(const std::string& full) {
    Environment variables = collector_.tracing(full);
    variables["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    variables["COLLECT_EXIT_FLUSH_MS"] = "60000";
    return variables;
  }

  // A program from its start to its removal.
  void one_life(uint64_t number) {
    const std::string progress = scratch_ / "progress";
    ChildProcess job(scratch_.path(),
                     {traced_program("chaos"), progress, std::to_string(kThreads), kIterations},
                     environment("wait"));
    if (number % 3 == 0) proxy_.cut_one(number, number % 2 == 0);
    ASSERT_TRUE(job.wait(seconds(90)).exited_with(0));
    const ChaosTally tally = check_chaos_process(
        collector_.root(), job.pid(), read_progress(progress, kThreads), ChaosEnd::kOrderly, true);
    events_ += tally.events;
    for (const std::string& directory : session_directories(collector_.root(), job.pid())) {
      const std::string name = directory.substr(collector_.root().size() + 1);
      const std::string copy = scratch_ / "copy";
      EXPECT_TRUE(collector_.ctl({"download", name, "-o", copy}).exited_with(0));
      std::filesystem::remove_all(copy);
      const Ending removed = collector_.ctl({"delete", name});
      EXPECT_TRUE(removed.exited_with(0)) << removed.errors;
    }
  }

  Scratch scratch_;
  CollectorProcess collector_;
  fakes::ChaosProxy proxy_;
  uint64_t events_ = 0;
};

TEST_F(Soak, MemoryAndDescriptorsDoNotGrow) {
  const uint64_t limit_s = setting("COLLECT_SOAK_SECONDS", 20);
  // Its ring is small, or the pages that it takes while the link is cut would count as growth.
  Environment small_ring = environment("drop");
  small_ring["COLLECT_BUFFER_MB"] = "4";
  ChildProcess steady(scratch_.path(), {traced_program("chaos"), scratch_ / "steady", "1"},
                      small_ring);
  const auto begin = std::chrono::steady_clock::now();
  const auto warm = begin + seconds(std::max<uint64_t>(limit_s / 4, 1));
  uint64_t lives = 0;
  while (std::chrono::steady_clock::now() < warm) ASSERT_NO_FATAL_FAILURE(one_life(lives++));
  const uint64_t daemon_before = collector_.process().resident_bytes();
  const uint64_t steady_before = steady.resident_bytes();
  const size_t files_before = open_descriptors(collector_.process().pid());
  uint64_t highest = daemon_before;
  while (std::chrono::steady_clock::now() < begin + seconds(limit_s)) {
    ASSERT_NO_FATAL_FAILURE(one_life(lives++));
    highest = std::max(highest, collector_.process().resident_bytes());
  }
  const uint64_t daemon_after = collector_.process().resident_bytes();
  std::printf(
      "%llu s, %llu programs, %llu events, %llu cuts: the daemon had %llu KiB after the "
      "warm-up, %llu KiB at the end, %llu KiB at most\n",
      static_cast<unsigned long long>(limit_s), static_cast<unsigned long long>(lives),
      static_cast<unsigned long long>(events_), static_cast<unsigned long long>(proxy_.cuts()),
      static_cast<unsigned long long>(daemon_before / 1024),
      static_cast<unsigned long long>(daemon_after / 1024),
      static_cast<unsigned long long>(highest / 1024));
  EXPECT_LT(daemon_after, daemon_before + kMayGrow);
  EXPECT_LT(steady.resident_bytes(), steady_before + kMayGrow);
  EXPECT_LT(open_descriptors(collector_.process().pid()), files_before + 64);
  steady.send_signal(SIGTERM);
  EXPECT_TRUE(steady.wait(seconds(90)).exited_with(0));
  check_chaos_process(collector_.root(), steady.pid(), read_progress(scratch_ / "steady", 1),
                      ChaosEnd::kOrderly, false);
}

}  // namespace
}  // namespace collect::e2e
