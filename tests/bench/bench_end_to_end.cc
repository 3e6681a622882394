// Traced processes, to sealed and verified files: events per second at full speed, nothing lost;
// what is kept of three busy threads; what `collectctl run` costs by itself; and what the agent and
// the daemon take in memory.
//
// bench_end_to_end MILLION_PAIRS REPEATS
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/contract.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/warm_memory.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"

namespace collect::bench {
namespace {

constexpr uint64_t kRingBytes = 256u << 20;

struct Run {
  double sealed_rate = 0;    // million events a second until the files are sealed
  double verified_rate = 0;  // … until they are verified too
};

long resident_kb(const std::string& status) {
  std::istringstream lines(status);
  std::string line;
  long kb = 0;
  while (std::getline(lines, line)) {
    if (std::sscanf(line.c_str(), "VmRSS: %ld", &kb) == 1) break;
    if (std::sscanf(line.c_str(), "rss_kb %ld", &kb) == 1) break;
  }
  return kb;
}

long daemon_kb(e2e::CollectorProcess& collector) {
  const std::string pid = std::to_string(collector.process().pid());
  return resident_kb(e2e::read_text_file("/proc/" + pid + "/status"));
}

// What a burst needed goes back within a second or two: the lowest figure counts.
long settled_kb(e2e::CollectorProcess& collector) {
  long least = daemon_kb(collector);
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    least = std::min(least, daemon_kb(collector));
  }
  return least;
}

std::string hook_loop() {
  return std::string(BENCH_PROGRAMS) + "/hook_loop";
}

void fail(const std::string& why) {
  std::printf("%s\n", why.c_str());
  std::exit(1);
}

Run full_speed(uint64_t pairs, int threads) {
  e2e::Scratch scratch;
  warm_memory(2 * pairs * static_cast<uint64_t>(threads) * 32 + kRingBytes);
  e2e::CollectorProcess collector(scratch);
  const double begin = wall_seconds();
  e2e::ChildProcess job(scratch.path(),
                        {hook_loop(), std::to_string(pairs), std::to_string(threads)},
                        collector.tracing("wait"));
  if (!job.wait(e2e::seconds(120)).exited_with(0)) fail("hook_loop failed");
  std::vector<e2e::RecordedSession> sessions =
      e2e::sealed_sessions(collector.root(), job.pid(), e2e::seconds(120));
  const double sealed = wall_seconds() - begin;
  if (sessions.size() != 1) fail("no session");
  const e2e::SessionTotals totals = sessions[0].totals();
  const uint64_t expected = 2 * pairs * static_cast<uint64_t>(threads);
  // The program's few other functions come on top; e2e_real_job_test compares exactly.
  if (totals.events < expected || totals.lost != 0) {
    fail(std::to_string(totals.events) + " of at least " + std::to_string(expected) + " events, " +
         std::to_string(totals.lost) + " lost");
  }
  const double verify_begin = wall_seconds();
  const e2e::Ending verified = collector.ctl({"verify", sessions[0].directory()});
  const double verified_in = sealed + wall_seconds() - verify_begin;
  if (!verified.exited_with(0)) fail("verify: " + verified.output + verified.errors);
  const double events = static_cast<double>(expected) * 1e-6;
  return {events / sealed, events / verified_in};
}

void report_speed(uint64_t pairs, int threads, int repeats) {
  std::vector<double> sealed, verified;
  for (int i = 0; i < repeats; ++i) {
    const Run run = full_speed(pairs / static_cast<uint64_t>(threads), threads);
    sealed.push_back(run.sealed_rate);
    verified.push_back(run.verified_rate);
  }
  std::sort(sealed.begin(), sealed.end());
  std::sort(verified.begin(), verified.end());
  const std::string who = std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  report("traced process to sealed and verified files, " + who, verified[verified.size() / 2],
         Side::kAtLeast, 40, "M ev/s", 1);
  mention("  until sealed", sealed[sealed.size() / 2], "M ev/s", 1);
}

// More busy threads than this machine may have processors for them, the drain and the collector.
constexpr int kBusyThreads = 3;

struct Kept {
  uint64_t events = 0;
  uint64_t lost = 0;
};

// The real job under a plain `collectctl run`.
Kept run_busy_threads(const std::string& rounds, const e2e::Arguments& options) {
  e2e::Scratch scratch;
  e2e::Arguments command = {e2e::program("collectctl"), "run", "--quiet", "-o", scratch / "traces"};
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(),
                 {"--", e2e::program("json_iso_codes"), rounds, std::to_string(kBusyThreads)});
  const e2e::Ending ending = e2e::run(scratch.path(), command, {}, e2e::seconds(300));
  // With events lost the run says so and fails.
  if (ending.timed_out || ending.signal != 0) fail("collectctl run: " + ending.describe());
  Kept kept;
  for (const std::string& directory : e2e::session_directories(scratch / "traces")) {
    const e2e::SessionTotals totals = e2e::RecordedSession(directory).totals();
    kept.events += totals.events;
    kept.lost += totals.lost;
  }
  if (kept.events == 0) fail("nothing was recorded: " + ending.errors);
  return kept;
}

void report_busy_threads(const std::string& rounds) {
  const Kept waited = run_busy_threads(rounds, {});
  report("three busy threads, as shipped: events lost", static_cast<double>(waited.lost) * 1e-6,
         Side::kAtMost, 0, "M", 1);
  const Kept dropped = run_busy_threads(rounds, {"--when-full", "drop"});
  const auto all = static_cast<double>(dropped.events + dropped.lost);
  report("  the same with --when-full drop: kept", 100 * static_cast<double>(dropped.events) / all,
         Side::kAtLeast, 60, "%", 0);
}

double run_milliseconds(const std::string& scratch, const e2e::Arguments& command) {
  const double begin = wall_seconds();
  const e2e::Ending ending = e2e::run(scratch, command);
  if (!ending.exited_with(0)) fail(ending.describe() + ": " + ending.errors);
  return (wall_seconds() - begin) * 1000;
}

void report_run(int repeats) {
  e2e::Scratch scratch;
  const e2e::Arguments loop = {hook_loop(), "10"};
  e2e::Arguments traced = {e2e::program("collectctl"), "run", "--quiet", "-o",
                           scratch / "traces",         "--"};
  traced.insert(traced.end(), loop.begin(), loop.end());
  std::vector<double> more;
  for (int i = 0; i <= 3 * repeats; ++i) {
    const double bare = run_milliseconds(scratch.path(), loop);
    const double ours = run_milliseconds(scratch.path(), traced) - bare;
    if (i != 0) more.push_back(ours);  // the first one reads programs and libraries
    std::filesystem::remove_all(scratch / "traces");
  }
  std::sort(more.begin(), more.end());
  report("collectctl run of a short program, over the program", more[more.size() / 2],
         Side::kAtMost, 40, "ms", 0);
}

long loop_kb(const std::string& scratch, const e2e::Environment& environment, uint64_t pairs,
             int threads) {
  const e2e::Ending ending =
      e2e::run(scratch, {hook_loop(), std::to_string(pairs), std::to_string(threads)}, environment);
  const size_t at = ending.output.find("rss_kb");
  if (at == std::string::npos) fail("hook_loop printed no memory");
  return resident_kb(ending.output.substr(at));
}

void report_start() {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    e2e::Scratch scratch;
    const double begin = wall_seconds();
    e2e::CollectorProcess collector(scratch);
    const double milliseconds = (wall_seconds() - begin) * 1000;
    best = i == 0 ? milliseconds : std::min(best, milliseconds);
  }
  report("collectord, start to ready (looked at every 5 ms)", best, Side::kAtMost, 100, "ms", 0);
}

void report_memory() {
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch);
  report("collectord, idle", static_cast<double>(daemon_kb(collector)) / 1024, Side::kAtMost, 40,
         "MB", 1);
  e2e::Environment idle = collector.tracing();
  idle["COLLECT_START"] = "idle";
  const long plain = loop_kb(scratch.path(), {}, 1000, 1);
  const long attached = loop_kb(scratch.path(), idle, 1000, 1);
  mention("agent's memory, attached and idle", static_cast<double>(attached - plain) / 1024, "MB",
          2);
  const long busy = loop_kb(scratch.path(), collector.tracing(), 10'000'000, 1);
  mention("agent's memory, one thread at full speed (64 MB ring)",
          static_cast<double>(busy - plain) / 1024, "MB", 1);
  const long plain_threads = loop_kb(scratch.path(), {}, 100, 400);
  const long threads = loop_kb(scratch.path(), collector.tracing(), 100, 400);
  mention("agent's memory for each thread that does little",
          static_cast<double>(threads - plain_threads - (attached - plain)) / 400, "KiB", 1);

  const long before = settled_kb(collector);
  e2e::ChildProcess many(scratch.path(), {hook_loop(), "100", "400", "100000"},
                         collector.tracing());
  const bool there = e2e::eventually(e2e::seconds(120), [&collector, &many] {
    const auto directories = e2e::session_directories(collector.root(), many.pid());
    return !directories.empty() && std::filesystem::exists(directories[0] + "/thread_399");
  });
  if (!there) fail("no 400 streams");
  report("collectord's memory for each idle stream",
         static_cast<double>(settled_kb(collector) - before) / 400, Side::kAtMost, 8, "KiB", 1);

  const std::string stripped = scratch / "agent.so";
  e2e::run(scratch.path(), {"strip", "-o", stripped, e2e::agent_library()});
  report("libcollect_agent.so, stripped",
         static_cast<double>(std::filesystem::file_size(stripped)) / 1024, Side::kAtMost, 300,
         "KiB", 0);
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  using namespace collect::bench;
  const uint64_t pairs = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20) * 1'000'000;
  const int repeats = argc > 2 ? std::atoi(argv[2]) : 3;
  report_speed(pairs, 1, repeats);
  report_speed(pairs, 2, repeats);
  report_busy_threads(pairs < 10'000'000 ? "1" : "2");
  report_run(repeats);
  report_start();
  report_memory();
  return 0;
}
