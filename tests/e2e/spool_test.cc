// The cable is out for longer than the rings last: what is recorded meanwhile waits in the spool,
// and arrives in the same session.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/e2e/chaos_check.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

using nlohmann::json;

constexpr size_t kThreads = 4;
constexpr uint64_t kEventBytes = 32;
constexpr uint64_t kBufferBytes = 1 << 20;
// Bytes a second: less than the program makes, so that the spool grows while it is handed over.
constexpr uint64_t kSlowLink = 200'000;
constexpr seconds kJobLimit{120};

class SpoolE2eTest : public testing::TestWithParam<const char*> {
 protected:
  void start(const std::string& full_policy, const std::string& spool, uint32_t spool_mb) {
    std::filesystem::create_directory(scratch_ / "spool");
    Environment environment = collector_.tracing(full_policy);
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    environment["COLLECT_DRAIN"] = GetParam();
    environment["COLLECT_EXIT_FLUSH_MS"] = "120000";
    environment["COLLECT_BUFFER_MB"] = "1";
    environment["COLLECT_SPOOL"] = scratch_ / spool;
    environment["COLLECT_SPOOL_MB"] = std::to_string(spool_mb);
    environment["COLLECT_LOG"] = "1";
    job_ = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{traced_program("chaos"), scratch_ / "progress", std::to_string(kThreads)},
        environment);
    ASSERT_TRUE(eventually(kJobLimit, [&] { return number("sessions", "events") > 0; }))
        << job_->errors();
  }

  // Of the one agent or session.
  uint64_t number(const char* list, const char* field) const {
    const json listed = json::parse(collector_.ctl({"--json", list}).output, nullptr, false);
    if (!listed.contains(list) || listed[list].empty()) return 0;
    return std::stoull(listed[list][0].value(field, std::string("0")));
  }

  void unplug() {
    proxy_.hold(true);
    proxy_.cut_all(false);
  }
  // Until each thread has recorded so many events more.
  void run_on(uint64_t events) {
    const std::vector<ChaosThread> before = read_progress(scratch_ / "progress", kThreads);
    ASSERT_TRUE(eventually(kJobLimit, [&] {
      const std::vector<ChaosThread> now = read_progress(scratch_ / "progress", kThreads);
      for (size_t i = 0; i < kThreads; ++i) {
        if (now[i].done < before[i].done + events / 2) return false;
      }
      return true;
    })) << job_->errors();
  }
  ChaosTally finish(bool lossless) {
    job_->send_signal(SIGTERM);
    EXPECT_TRUE(job_->wait(kJobLimit).exited_with(0)) << job_->errors();
    const ChaosTally tally = check_chaos_process(collector_.root(), job_->pid(),
                                                 read_progress(scratch_ / "progress", kThreads),
                                                 ChaosEnd::kOrderly, lossless);
    EXPECT_EQ(tally.sessions, 1u);
    for (const std::string& directory : session_directories(collector_.root())) {
      const Ending verified = collector_.ctl({"verify", directory}, kJobLimit);
      EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    }
    return tally;
  }

  Scratch scratch_;
  CollectorProcess collector_{scratch_,
                              {"--rtc", "false", "--heartbeat-ms", "100", "--resume-ms", "120000"}};
  fakes::ChaosProxy proxy_{collector_.ingest_port()};
  std::unique_ptr<ChildProcess> job_;
};

TEST_P(SpoolE2eTest, NothingIsLostWhileTheCableIsOut) {
  start("wait", "spool", 64);
  for (int unplugged = 0; unplugged < 3; ++unplugged) {
    unplug();
    run_on(8 * kBufferBytes / kEventBytes / kThreads);
    proxy_.limit_rate(kSlowLink);
    proxy_.hold(false);
    // The next time in the middle of it.
    ASSERT_TRUE(eventually(kJobLimit, [&] { return number("agents", "spooledBytes") > 0; }));
  }
  proxy_.limit_rate(0);
  EXPECT_TRUE(std::filesystem::is_empty(scratch_ / "spool")) << "its file has no name";
  EXPECT_EQ(finish(true).lost, 0u);
}

TEST_P(SpoolE2eTest, WhatASmallSpoolDoesNotHoldIsCounted) {
  start("drop", "spool", 1);
  unplug();
  // More pages than a megabyte has places for.
  run_on(64 * kBufferBytes / kEventBytes / kThreads);
  proxy_.hold(false);
  const ChaosTally tally = finish(false);
  EXPECT_GT(tally.lost, 0u);
  EXPECT_GT(tally.events, 2 * kBufferBytes / kEventBytes) << "the spool held more than the rings";
}

TEST_P(SpoolE2eTest, WithoutAFolderItSaysSoAndRecords) {
  start("drop", "missing", 64);
  EXPECT_NE(job_->errors().find("no spool in " + (scratch_ / "missing") + ": "), std::string::npos)
      << job_->errors();
  EXPECT_NE(job_->errors().find("no such file"), std::string::npos);
  (void)finish(false);
}

INSTANTIATE_TEST_SUITE_P(Drain, SpoolE2eTest, testing::Values("thread", "process"));

}  // namespace
}  // namespace collect::e2e
