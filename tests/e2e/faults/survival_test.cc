// One thing goes wrong, many times, at random moments of a recording under load; at the end it is
// one session, complete, with every event in its place. COLLECT_SURVIVAL_TIMES multiplies how often
// (default 1), COLLECT_SURVIVAL_SEED says when.
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

constexpr size_t kThreads = 4;

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

class Survival : public testing::TestWithParam<const char*> {
 protected:
  Survival()
      : daemon_(install_daemon()),
        collector_(scratch_,
                   {"--heartbeat-ms", "100", "--resume-ms", "120000", "--log-level", "warn",
                    "--rtc", "false"},
                   "", {}, daemon_),
        proxy_(collector_.ingest_port()),
        random_(setting("COLLECT_SURVIVAL_SEED", 1)) {}

  std::string install_daemon() {
    const std::string path = scratch_ / "collectord";
    std::filesystem::copy_file(program("collectord"), path);
    std::filesystem::create_symlink(program("collect-symbolizer"), scratch_ / "collect-symbolizer");
    return path;
  }
  uint64_t below(uint64_t bound) { return random_() % bound; }

  // Does `harm` so often while the program runs, each time after something was stored again, at a
  // random moment of the next hundred milliseconds.
  void survive(const std::string& what, uint64_t times, const std::function<void()>& harm) {
    times *= setting("COLLECT_SURVIVAL_TIMES", 1);
    Environment environment = collector_.tracing("wait");
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    environment["COLLECT_DRAIN"] = GetParam();
    environment["COLLECT_EXIT_FLUSH_MS"] = "60000";
    const std::string progress = scratch_ / "progress";
    ChildProcess job(scratch_.path(), {traced_program("chaos"), progress, std::to_string(kThreads)},
                     environment);
    for (uint64_t i = 0; i < times; ++i) {
      const uint64_t before = stored(job.pid());
      ASSERT_TRUE(eventually(seconds(60), [&] { return stored(job.pid()) > before; }))
          << "nothing is stored any more after " << i << " times";
      const auto moment = std::chrono::steady_clock::now() + std::chrono::milliseconds(below(100));
      while (std::chrono::steady_clock::now() < moment) pause_briefly();
      harm();
      ASSERT_TRUE(job.running());
    }
    job.send_signal(SIGTERM);
    ASSERT_TRUE(job.wait(seconds(90)).exited_with(0));
    const ChaosTally tally = check_chaos_process(
        collector_.root(), job.pid(), read_progress(progress, kThreads), ChaosEnd::kOrderly, true);
    EXPECT_EQ(tally.sessions, 1u) << "the recording is one session";
    EXPECT_EQ(tally.lost, 0u);
    const std::vector<std::string> directories = session_directories(collector_.root());
    ASSERT_EQ(directories.size(), 1u);
    EXPECT_EQ(RecordedSession(directories[0]).state(), "complete");
    const Ending verified = run(scratch_.path(), {program("collectctl"), "verify", directories[0]});
    EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    std::printf("%s: %llu times survived, %llu events, none lost, none twice\n", what.c_str(),
                static_cast<unsigned long long>(times),
                static_cast<unsigned long long>(tally.events));
  }

  // Bytes in the files of the process.
  uint64_t stored(int pid) {
    uint64_t bytes = 0;
    std::error_code none;
    for (const std::string& directory : session_directories(collector_.root(), pid)) {
      for (size_t thread = 0; thread < kThreads; ++thread) {
        const auto size = std::filesystem::file_size(
            directory + "/thread_" + std::to_string(thread) + "/index.atf", none);
        if (!none) bytes += size;
      }
    }
    return bytes;
  }

  void start_daemon_again() {
    collector_.process().wait(seconds(20));
    collector_.start_again();
  }

  // Under the name that is started, by a rename as dpkg does it: the one that runs keeps its file.
  void install_another_daemon() {
    const std::string fresh = daemon_ + ".new";
    std::filesystem::copy_file(program("collectord"), fresh);
    std::filesystem::rename(fresh, daemon_);
  }

  Scratch scratch_;
  const std::string daemon_;  // a file of its own, which upgrades replace
  CollectorProcess collector_;
  fakes::ChaosProxy proxy_;
  std::mt19937_64 random_;
};

TEST_P(Survival, LinksCutInMidFrame) {
  survive("links cut", 20, [this] {
    if (below(3) == 0) {
      proxy_.cut_all(below(2) == 0);
    } else {
      proxy_.cut_one(random_(), below(2) == 0);
    }
  });
}

// No end is ever seen of such a link: both sides have to find out by themselves.
TEST_P(Survival, LinksThatFallSilent) {
  survive("half-open links", 4, [this] { proxy_.abandon_all(); });
}

TEST_P(Survival, DaemonKilled) {
  survive("kill -9 of the daemon", 10, [this] {
    collector_.process().send_signal(SIGKILL);
    start_daemon_again();
  });
}

// Stopped and started again, as systemctl restart does.
TEST_P(Survival, DaemonRestarted) {
  survive("orderly restarts of the daemon", 10, [this] {
    EXPECT_TRUE(collector_.stop().exited_with(0)) << collector_.process().errors();
    start_daemon_again();
  });
}

// Another file in the place of the program, then a restart: what an upgrade of the package does.
TEST_P(Survival, DaemonUpgraded) {
  survive("upgrades of the daemon", 10, [this] {
    install_another_daemon();
    EXPECT_TRUE(collector_.stop().exited_with(0)) << collector_.process().errors();
    start_daemon_again();
  });
}

INSTANTIATE_TEST_SUITE_P(Drain, Survival, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
