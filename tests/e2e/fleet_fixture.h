// A program that knows several collectors, and a store that these copy their sessions to.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/upload/fake_s3.h"
#include "tests/e2e/chaos_check.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::e2e {

using nlohmann::json;

inline constexpr size_t kCollectors = 3;
inline constexpr size_t kThreads = 2;

inline uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

inline uint64_t seed() {
  const uint64_t seed = setting("COLLECT_FLEET_SEED", std::random_device()());
  std::printf("  seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Lets them record for a while: what is compared does not depend on how long.
inline void pause(uint64_t ms) {
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

// ---- and a store

struct WithStore {
  upload::test::FakeS3 store;
};

class StoreFleetTest : protected WithStore, public FleetTest {
 protected:
  explicit StoreFleetTest(const std::string& durability = "os")
      : FleetTest({"--store", kUrl, "--store-endpoint", store.endpoint(), "--durability",
                   durability, "--store-segment-ms", "50"},
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
  template <class IsOne>
  ptrdiff_t count_keys(IsOne&& is_one) {
    const auto objects = store.objects().get<std::map<std::string, json>>();
    return std::ranges::count_if(objects, [&](const auto& one) { return is_one(one.first); });
  }
  ptrdiff_t commits() {
    return count_keys([](const std::string& key) { return key.ends_with("/COMMIT"); });
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

}  // namespace collect::e2e
