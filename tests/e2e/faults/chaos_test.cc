// Everything at once: several traced programs, a cable that is cut, held, abandoned and slow, a
// daemon that is killed, terminated and stopped in its tracks, programs that are killed, a disk
// that is full. Then every thread's events are compared one by one with what the program did.
//
// COLLECT_CHAOS_SECONDS (default 15) and COLLECT_CHAOS_SEED (printed) say how long and which. What
// happens when follows from the seed; what it hits, from the machine.
#include <gtest/gtest.h>
#include <signal.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include "tests/e2e/collector_process.h"
#include "tests/e2e/faults/chaos_check.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/chaos_proxy.h"

namespace collect::e2e {
namespace {

constexpr size_t kPrograms = 4;
constexpr size_t kThreads = 2;
constexpr uint64_t kRoundSeconds = 15;  // then files are checked and removed
constexpr char kDiskSize[] = "size=3g";
constexpr seconds kDrainProcessLimit{90};  // one may try for a minute

uint64_t setting(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::strtoull(value, nullptr, 10) : otherwise;
}

// A disk of a size of its own, where that is permitted.
class SmallDisk {
 public:
  explicit SmallDisk(const Scratch& scratch) : scratch_(scratch), path_(scratch / "disk") {
    std::filesystem::create_directories(path_);
    mounted_ = run(scratch_.path(), {"mount", "-t", "tmpfs", "-o", kDiskSize, "tmpfs", path_})
                   .exited_with(0);
  }
  ~SmallDisk() {
    if (mounted_) (void)run(scratch_.path(), {"umount", path_});
  }
  bool mounted() const { return mounted_; }
  std::string root() const { return path_ + "/root"; }
  void fill() {
    (void)run(scratch_.path(), {"dd", "if=/dev/zero", "of=" + path_ + "/ballast", "bs=1M"});
  }
  void empty() { std::filesystem::remove(path_ + "/ballast"); }

 private:
  const Scratch& scratch_;
  const std::string path_;
  bool mounted_ = false;
};

struct Program {
  std::unique_ptr<ChildProcess> process;
  std::string progress;
  std::string full;
  std::string drain;
};

class Chaos {
 public:
  Chaos(uint64_t seed, const Scratch& scratch)
      : random_(seed),
        scratch_(scratch),
        disk_(scratch),
        collector_(scratch,
                   {"--heartbeat-ms", "200", "--resume-ms", "90000", "--rtc-roll-bytes", "8388608",
                    "--rtc-budget-bytes", "16777216", "--log-level", "warn"},
                   disk_.mounted() ? disk_.root() : ""),
        proxy_(collector_.ingest_port()) {
    for (size_t i = 0; i < kPrograms; ++i) start(i);
  }

  void go_on_for(seconds time) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < end && !testing::Test::HasFailure()) {
      wait(10 + below(150));
      act();
    }
  }

  // Peace, and the reckoning.
  void finish() {
    proxy_.hold(false);
    proxy_.trickle(0);
    for (Program& program : programs_) end_orderly(program);
    for (const auto& [what, times] : done_) {
      std::printf("  %-28s %llu\n", what.c_str(), static_cast<unsigned long long>(times));
    }
    // What a collector that was stopped has sealed is not all: the drain process comes back with
    // the rest.
    EXPECT_TRUE(eventually(kDrainProcessLimit, [&] {
      return drain_processes(scratch_.path()).empty();
    })) << "a drain process is still there";
    ChaosTally all;
    // What no one will come back for is sealed last, by command.
    std::vector<std::pair<int, Ended>> in_order;
    for (const bool cut_off : {false, true}) {
      for (const auto& one : ended_) {
        if ((one.second.end == ChaosEnd::kCutOff) == cut_off) in_order.push_back(one);
      }
    }
    bool is_stopped = false;
    for (const auto& [pid, ended] : in_order) {
      if (ended.end == ChaosEnd::kCutOff && !std::exchange(is_stopped, true)) {
        (void)collector_.ctl({"stop"});
      }
      const ChaosTally tally =
          check_chaos_process(collector_.root(), pid, ended.progress, ended.end, ended.lossless);
      all.sessions += tally.sessions;
      all.events += tally.events;
      all.lost += tally.lost;
    }
    std::printf(
        "  %zu programs, %llu sessions, %llu events checked, %llu lost and counted, %llu "
        "connections cut\n",
        ended_.size(), static_cast<unsigned long long>(all.sessions),
        static_cast<unsigned long long>(all.events), static_cast<unsigned long long>(all.lost),
        static_cast<unsigned long long>(proxy_.cuts()));
    EXPECT_TRUE(collector_.process().running());
    EXPECT_TRUE(collector_.stop().exited_with(0));
    for (const std::string& directory : session_directories(collector_.root())) {
      const Ending verified =
          run(scratch_.path(), {program("collectctl"), "verify", "--allow-incomplete", directory});
      EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
    }
  }

 private:
  struct Ended {
    std::vector<ChaosThread> progress;
    ChaosEnd end{};
    bool lossless = false;
  };

  uint64_t below(uint64_t bound) { return random_() % bound; }

  static void wait(uint64_t ms) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
    while (std::chrono::steady_clock::now() < until) pause_briefly();
  }

  void start(size_t place) {
    static constexpr const char* kFull[] = {"wait", "wait", "drop", "overwrite"};
    static constexpr const char* kDrain[] = {"thread", "process", "process", "process"};
    Environment environment = collector_.tracing(kFull[place]);
    environment["COLLECT_CONNECT"] = "127.0.0.1:" + std::to_string(proxy_.port());
    environment["CHAOS_OF"] = scratch_.path();  // which is how its drain process is known
    environment["COLLECT_DRAIN"] = kDrain[place];
    environment["COLLECT_BUFFER_MB"] = place < 2 ? "64" : "4";
    environment["COLLECT_EXIT_FLUSH_MS"] = "60000";
    Program& program = programs_[place];
    program.progress = scratch_ / ("progress_" + std::to_string(started_++));
    program.full = kFull[place];
    program.drain = kDrain[place];
    program.process = std::make_unique<ChildProcess>(
        scratch_.path(),
        Arguments{traced_program("chaos"), program.progress, std::to_string(kThreads)},
        environment);
    // So that it is at work when it is ended.
    ASSERT_TRUE(eventually(seconds(30), [&] {
      std::error_code none;
      if (std::filesystem::file_size(program.progress, none) != kThreads * 32 || none) return false;
      for (const ChaosThread& thread : read_progress(program.progress, kThreads)) {
        if (thread.done == 0) return false;
      }
      return true;
    }));
  }

  void ended(Program& program, ChaosEnd end) {
    ended_[program.process->pid()] = {read_progress(program.progress, kThreads), end,
                                      program.full == "wait"};
  }

  void end_orderly(Program& program) {
    program.process->send_signal(SIGTERM);
    const Ending& ending = program.process->wait(seconds(90));
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
    ended(program, ChaosEnd::kOrderly);
  }

  void stop_and_go(pid_t pid, uint64_t ms) {
    kill(pid, SIGSTOP);
    wait(ms);
    kill(pid, SIGCONT);
  }

  void act() {
    const uint64_t choice = below(disk_.mounted() ? 22 : 21);
    const size_t place = below(kPrograms);
    const bool reset = below(2) == 0;
    std::string what;
    if (choice < 5) {
      what = "cut one connection";
      proxy_.cut_one(random_(), reset);
    } else if (choice < 7) {
      what = "cut all connections";
      proxy_.cut_all(reset);
    } else if (choice < 9) {
      what = "hold all connections";
      proxy_.hold(true);
      wait(50 + below(400));
      proxy_.hold(false);
    } else if (choice < 10) {
      what = "abandon all connections";
      proxy_.abandon_all();
    } else if (choice < 11) {
      what = "let bytes trickle";
      proxy_.trickle(1 + below(2000));
      wait(100 + below(200));
      proxy_.trickle(0);
    } else if (choice < 14) {
      what = "kill -9 the daemon";
      collector_.process().send_signal(SIGKILL);
      collector_.process().wait(seconds(10));
      wait(below(300));
      collector_.start_again();
    } else if (choice < 15) {
      what = "stop and start the daemon";
      EXPECT_TRUE(collector_.stop().exited_with(0));
      collector_.start_again();
    } else if (choice < 16) {
      what = "suspend the daemon";
      stop_and_go(collector_.process().pid(), 100 + below(900));
    } else if (choice < 17) {
      what = "suspend a program";
      stop_and_go(programs_[place].process->pid(), 100 + below(900));
    } else if (choice < 20) {
      what = "kill -9 a program";
      Program& program = programs_[place];
      program.process->send_signal(SIGKILL);
      program.process->wait(seconds(10));
      ended(program, program.drain == "process" ? ChaosEnd::kKilled : ChaosEnd::kCutOff);
      start(place);
    } else if (choice < 21) {
      what = "end a program";
      end_orderly(programs_[place]);
      start(place);
    } else {
      what = "fill the disk";
      disk_.fill();
      wait(below(300));
      disk_.empty();
    }
    ++done_[what];
  }

  std::mt19937_64 random_;
  const Scratch& scratch_;
  SmallDisk disk_;
  CollectorProcess collector_;
  fakes::ChaosProxy proxy_;
  std::array<Program, kPrograms> programs_;
  size_t started_ = 0;
  std::map<int, Ended> ended_;  // by pid
  std::map<std::string, uint64_t> done_;
};

TEST(Chaos, EveryEventIsStoredOrCounted) {
  const uint64_t limit_s = setting("COLLECT_CHAOS_SECONDS", kRoundSeconds);
  uint64_t seed = setting("COLLECT_CHAOS_SEED", 20'260'101);
  for (uint64_t at = 0; at < limit_s && !HasFailure(); at += kRoundSeconds) {
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    Scratch scratch;
    Chaos chaos(seed++, scratch);
    chaos.go_on_for(seconds(std::min(kRoundSeconds, limit_s - at)));
    chaos.finish();
  }
}

}  // namespace
}  // namespace collect::e2e
