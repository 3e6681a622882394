// What the tests of the spool share: a real collectord, a cable that is bad by command, and a busy
// program on the other end of it.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {

inline constexpr size_t kThreads = 4;
inline constexpr uint64_t kEventBytes = 32;
inline constexpr uint64_t kBufferBytes = 1 << 20;
inline constexpr seconds kJobLimit{120};

class SpoolE2eTest : public testing::TestWithParam<const char*> {
 protected:
  void start(const std::string& full_policy, const std::string& spool, uint32_t spool_mb,
             uint32_t buffer_mb = 1) {
    begin(full_policy, spool, spool_mb, buffer_mb);
    ASSERT_TRUE(eventually(kJobLimit, [&] { return number("sessions", "events") > 0; }))
        << job_->errors();
  }
  void begin(const std::string& full_policy, const std::string& spool, uint32_t spool_mb,
             uint32_t buffer_mb, const Arguments& command = {}) {
    std::filesystem::create_directory(scratch_ / "spool");
    Environment environment = collector_.tracing(full_policy);
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    environment["COLLECT_DRAIN"] = GetParam();
    environment["COLLECT_EXIT_FLUSH_MS"] = "120000";
    environment["COLLECT_BUFFER_MB"] = std::to_string(buffer_mb);
    environment["COLLECT_SPOOL"] = scratch_ / spool;
    environment["COLLECT_SPOOL_MB"] = std::to_string(spool_mb);
    environment["COLLECT_LOG"] = "1";
    const Arguments chaos = {traced_program("chaos"), scratch_ / "progress",
                             std::to_string(kThreads)};
    job_ = std::make_unique<ChildProcess>(scratch_.path(), command.empty() ? chaos : command,
                                          environment);
  }

  // Of the one agent or session.
  uint64_t number(const char* list, const char* field) const {
    const auto listed =
        nlohmann::json::parse(collector_.ctl({"--json", list}).output, nullptr, false);
    if (!listed.contains(list) || listed[list].empty()) return 0;
    return listed[list][0].value(field, uint64_t{0});
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

}  // namespace collect::e2e
