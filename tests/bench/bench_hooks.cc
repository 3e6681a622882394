// Nanoseconds of the traced thread's CPU per call + return, side by side in one run: without hooks,
// with empty ones, with the floor's, with the agent's. Each sample is a process of its own
// (hook_loop), because a process has one set of hooks; the variants take turns, so that a slow
// moment of the machine meets all of them. Some are taken again while every processor has something
// else to do, as in a busy program.
//
// bench_hooks [--repeats N] [--pairs N], then Google Benchmark's own flags.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/patch/plan_store.h"
#include "daemon/patch/planner/planner.h"
#include "tests/bench/contract.h"
#include "tests/e2e/collector_process.h"

namespace collect::bench {
namespace {

constexpr uint64_t kPairs = 4'000'000;
constexpr uint64_t kRepeats = 3;  // of each process

struct Variant {
  const char* name;
  const char* program;
  e2e::Environment environment;
  uint64_t share = 1;            // of the pairs: detail records are large
  bool is_fresh = false;         // all pairs in one number: what a ring costs at first counts
  e2e::Arguments launcher = {};  // what starts the program; empty: nothing
};

// Keeps every processor busy, at the lowest priority, while it exists: what shares a core with the
// hooks competes for it, what has one of its own is not held up.
class Contention {
 public:
  Contention() {
    const unsigned count = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), 19);
        volatile uint64_t number = 1;
        while (!done_.load(std::memory_order_relaxed)) number = number * 3 + 1;
      });
    }
  }
  ~Contention() {
    done_.store(true);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> done_{false};
  std::vector<std::thread> threads_;
};

std::string hooks(const char* library) {
  return std::string(BENCH_LIBRARIES) + "/" + library;
}

// No one answers there: the ring turns over and nothing is shipped.
std::string closed_address() {
  return "127.0.0.1:" + std::to_string(e2e::free_port());
}

std::vector<double> sample(const std::string& scratch, const Variant& variant, uint64_t pairs) {
  e2e::Arguments command = variant.launcher;
  command.insert(command.end(),
                 {std::string(BENCH_PROGRAMS) + "/" + variant.program,
                  std::to_string(variant.is_fresh ? pairs * kRepeats : pairs / variant.share), "1",
                  std::to_string(variant.is_fresh ? 1 : kRepeats)});
  const e2e::Ending ending = e2e::run(scratch, command, variant.environment);
  std::vector<double> numbers;
  std::istringstream lines(ending.output);
  for (double ns = 0; lines >> ns;) numbers.push_back(ns);
  return numbers;
}

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

// With the plan of the program that no compiler prepared.
Result<patch::PlanFolder> plans() {
  const std::string path = std::string(BENCH_PROGRAMS) + "/hook_loop_plain";
  std::ifstream file(path, std::ios::binary);
  const std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto plan = patch::make_plan(bytes);
  if (!plan.ok()) return plan.error();
  auto folder = patch::PlanFolder::create();
  if (folder.ok()) COLLECT_TRY(folder->add(*plan, path));
  return folder;
}

// Takes the flag and its value out of the command line.
uint64_t take_flag(int& argc, char** argv, const char* name, uint64_t otherwise) {
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::strcmp(argv[i], name) != 0) continue;
    const uint64_t value = std::strtoull(argv[i + 1], nullptr, 10);
    std::copy(argv + i + 2, argv + argc, argv + i);
    argc -= 2;
    return value;
  }
  return otherwise;
}

constexpr char kUftrace[] = "/usr/bin/uftrace";

// Programs that no compiler prepared: ours, and uftrace's, which writes what it records.
void add_unprepared(const std::string& scratch, const std::string& folder,
                    const e2e::Environment& recording, std::vector<Variant>& all) {
  e2e::Environment planned = recording;
  planned["COLLECT_PLANS"] = folder;
  all.push_back({"unprepared_recording", "hook_loop_plain", planned});
  planned["COLLECT_START"] = "idle";
  all.push_back({"unprepared_idle", "hook_loop_plain", planned});
  if (access(kUftrace, X_OK) == 0) {
    all.push_back({"uftrace_unprepared",
                   "hook_loop_plain",
                   {},
                   16,
                   false,
                   {kUftrace, "record", "--no-libcall", "-P", ".", "-d", scratch + "/uftrace"}});
  }
}

std::vector<Variant> variants(const e2e::CollectorProcess& collector, const std::string& scratch,
                              const std::string& folder) {
  e2e::Environment drained = collector.tracing("wait");
  e2e::Environment idle = collector.tracing("wait");
  idle["COLLECT_START"] = "idle";
  const e2e::Environment recording = {{"LD_PRELOAD", e2e::agent_library()},
                                      {"COLLECT_CONNECT", closed_address()},
                                      {"COLLECT_FULL", "overwrite"},
                                      {"COLLECT_BUFFER_MB", "1"}};
  std::vector<Variant> all = {
      {"no_hooks", "hook_loop_plain", {}},
      {"empty_hooks", "hook_loop", {{"LD_PRELOAD", hooks("libempty_hooks.so")}}},
      {"floor", "hook_loop", {{"LD_PRELOAD", hooks("libfloor_hooks.so")}}},
      {"agent_recording", "hook_loop", recording},
      {"agent_recording_64mb",
       "hook_loop",
       {{"LD_PRELOAD", e2e::agent_library()},
        {"COLLECT_CONNECT", closed_address()},
        {"COLLECT_FULL", "overwrite"}}},
      {"agent_drained", "hook_loop", drained, 1, true},
      {"agent_idle", "hook_loop", idle},
  };
  if (!folder.empty()) add_unprepared(scratch, folder, recording, all);
  e2e::Environment detail = recording;
  detail["COLLECT_BUFFER_MB"] = "8";
  for (const char* mode : {"armed", "on"}) {
    detail["COLLECT_DETAIL"] = mode;
    all.push_back({mode[0] == 'a' ? "agent_armed" : "agent_detail", "hook_loop", detail, 4});
  }
  if (access((std::string(BENCH_PROGRAMS) + "/hook_loop_xray").c_str(), X_OK) == 0) {
    all.push_back({"clang_no_hooks", "hook_loop_clang_plain", {}});
    all.push_back({"clang_recording", "hook_loop_clang", recording});
    all.push_back({"xray_no_agent", "hook_loop_xray", {}});
    all.push_back({"xray_idle", "hook_loop_xray", idle});
    all.push_back({"xray_recording", "hook_loop_xray", recording});
    all.push_back({"xray_detail", "hook_loop_xray", detail, 4});  // on, as the last of the two
  }
  return all;
}

constexpr char kContended[] = "_contended";

bool is_taken_again(const Variant& variant) {
  const std::string name = variant.name;
  return name == "floor" || name == "agent_recording";
}

using Samples = std::map<std::string, std::vector<double>>;

Samples take_samples(const std::string& scratch, const std::vector<Variant>& all, uint64_t repeats,
                     uint64_t pairs) {
  Samples taken;
  const auto take = [&](const Variant& variant, const std::string& name) {
    const std::vector<double> numbers = sample(scratch, variant, pairs);
    taken[name].insert(taken[name].end(), numbers.begin(), numbers.end());
  };
  for (uint64_t i = 0; i < repeats; ++i) {
    for (const Variant& variant : all) take(variant, variant.name);
    const Contention contention;
    for (const Variant& variant : all) {
      if (is_taken_again(variant)) take(variant, std::string(variant.name) + kContended);
    }
  }
  return taken;
}

// Google Benchmark shows and exports them: one iteration is one call + return.
void show(int argc, char** argv, const Samples& taken) {
  for (const auto& [name, numbers] : taken) {
    const double ns = median(numbers);
    benchmark::RegisterBenchmark(name.c_str(),
                                 [ns](benchmark::State& state) {
                                   for (auto _ : state) state.SetIterationTime(ns * 1e-9);
                                 })
        ->UseManualTime()
        ->Iterations(1);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}

void compare(std::map<std::string, double>& ns, bool has_plans) {
  report("hot path: recording / floor", ns["agent_recording"] / ns["floor"], Side::kAtMost, 1.1,
         "x");
  report("  the same, while all processors are busy",
         ns["agent_recording_contended"] / ns["floor_contended"], Side::kAtMost, 1.1, "x");
  mention("  the same, ring of 64 MB (beyond the caches)", ns["agent_recording_64mb"] / ns["floor"],
          "x");
  report("  the same, drained by collectord, from a fresh start", ns["agent_drained"] / ns["floor"],
         Side::kAtMost, 1.5, "x");
  report("detail armed, call + return", ns["agent_armed"], Side::kAtMost, 140, "ns", 0);
  report("detail on, call + return", ns["agent_detail"], Side::kAtMost, 140, "ns", 0);
  report("recording stopped: per hook, over an empty hook",
         (ns["agent_idle"] - ns["empty_hooks"]) / 2, Side::kAtMost, 2.0, "ns");
  if (ns.contains("xray_recording")) {
    mention("XRay without agent / not instrumented (clang)",
            ns["xray_no_agent"] / ns["clang_no_hooks"], "x");
    report("XRay, agent idle / not instrumented (clang)", ns["xray_idle"] / ns["clang_no_hooks"],
           Side::kAtMost, 1.05, "x");
    mention("XRay, recording / -finstrument-functions (clang)",
            ns["xray_recording"] / ns["clang_recording"], "x");
    mention("XRay, detail on / -finstrument-functions (gcc)",
            ns["xray_detail"] / ns["agent_detail"], "x");
  }
  if (has_plans) {
    report("not prepared, recording / -finstrument-functions (gcc)",
           ns["unprepared_recording"] / ns["agent_recording"], Side::kAtMost, 1.25, "x");
    report("not prepared, agent idle: over the program without an agent",
           ns["unprepared_idle"] - ns["no_hooks"], Side::kAtMost, 1.5, "ns");
    mention("not prepared, recording, call + return", ns["unprepared_recording"], "ns");
  }
  if (ns.contains("uftrace_unprepared")) {
    mention("  the same by uftrace -P, which writes meanwhile", ns["uftrace_unprepared"], "ns");
  }
  mention("floor, call + return", ns["floor"], "ns");
  mention("recording, call + return", ns["agent_recording"], "ns");
}

int run(int argc, char** argv) {
  const uint64_t repeats = take_flag(argc, argv, "--repeats", 5);
  const uint64_t pairs = take_flag(argc, argv, "--pairs", kPairs);
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch);
  const auto folder = plans();
  const std::vector<Variant> all =
      variants(collector, scratch.path(), folder.ok() ? folder->path() : "");
  const Samples taken = take_samples(scratch.path(), all, repeats, pairs);
  show(argc, argv, taken);
  std::map<std::string, double> ns;
  for (const auto& [name, numbers] : taken) ns[name] = median(numbers);
  std::printf("\n");
  compare(ns, folder.ok());
  return ns["agent_recording"] > 0 && ns["floor"] > 0 ? 0 : 1;
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  return collect::bench::run(argc, argv);
}
