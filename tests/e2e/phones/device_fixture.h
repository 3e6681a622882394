// What the tests with phones made up by them share: a real collectord that finds them by an adb
// server, real traced programs that listen as on a phone, and what came of them.
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {

class DeviceFixture : public testing::Test {
 protected:
  static constexpr seconds kSoon{60};
  static constexpr seconds kJobLimit{120};

  // `collectctl devices` says so, now or soon; empty, or what it said last.
  std::string wait_shown(const std::string& wanted, const Arguments& more = {}) {
    Arguments command = {"devices"};
    command.insert(command.end(), more.begin(), more.end());
    std::string last;
    const bool shown = eventually(kSoon, [&] {
      const Ending ending = collector_->ctl(command);
      EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
      last = ending.output;
      return last.find(wanted) != std::string::npos;
    });
    return shown ? "" : "\"" + wanted + "\" is not in:\n" + last;
  }

  // It pauses so long after each document, and waits for the collector at its end.
  std::unique_ptr<ChildProcess> start_program(const std::string& pause_ms,
                                              const std::string& listen = "abstract:") {
    return std::make_unique<ChildProcess>(scratch_.path(),
                                          Arguments{traced_program("json_iso_codes_counted"), "1",
                                                    "2", pause_ms, short_documents(scratch_)},
                                          Environment{{"LD_PRELOAD", agent_library()},
                                                      {"COLLECT_LISTEN", listen},
                                                      {"COLLECT_FULL", "wait"},
                                                      {"COUNT_FILE", scratch_ / "count"},
                                                      {"COLLECT_EXIT_FLUSH_MS", "60000"}});
  }
  // Where it listens, unless it was given a name.
  static std::string socket_of(const ChildProcess& job) {
    return "collect_agent_" + std::to_string(job.pid());
  }

  // Of all three threads.
  bool has_stored(int pid, uint64_t bytes) {
    return eventually(kSoon, [&] {
      const auto directories = session_directories(collector_->root(), pid);
      if (directories.empty()) return false;
      uint64_t stored = 0;
      for (int thread = 0; thread < 3; ++thread) {
        std::ifstream file(directories[0] + "/thread_" + std::to_string(thread) + "/index.atf",
                           std::ios::ate);
        if (file) stored += static_cast<uint64_t>(file.tellg());
      }
      return stored >= bytes;
    });
  }

  // It ends by itself, and everything that it did is in one session.
  void expect_whole(ChildProcess& job) {
    const Ending& ending = job.wait(kJobLimit);
    ASSERT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    const auto sessions = sealed_sessions(collector_->root(), job.pid());
    ASSERT_EQ(sessions.size(), 1u);
    EXPECT_EQ(sessions[0].state(), "complete");
    expect_exactly(sessions[0], read_count(scratch_ / "count", job.pid()));
  }

  Scratch scratch_;
  std::unique_ptr<CollectorProcess> collector_;
};

}  // namespace collect::e2e
