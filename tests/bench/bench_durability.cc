// What durability = fsync costs beside os: throughput until sealed and CPU,
// for one agent and for several at once, the same pages on the same disk in the same run.
//
// bench_durability MEGABYTES REPEATS DIRECTORY…
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/contract.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/feeder.h"
#include "tests/e2e/collector_process.h"

namespace collect::bench {
namespace {

constexpr uint32_t kFirstPid = 4'200'000;  // above the largest that Linux gives out

struct Run {
  double gb_per_second = 0;
  double cpu_per_gb = 0;
};

Run run(const std::string& directory, const char* durability, size_t agents,
        const PreparedPages& pages) {
  e2e::Scratch scratch;
  // A slow disk is what is measured: it is no reason to let a link go.
  e2e::CollectorProcess collector(
      scratch, {"--rtc", "false", "--durability", durability, "--heartbeat-ms", "60000"},
      directory + "/root");
  const pid_t pid = collector.process().pid();
  const double cpu_before = process_cpu_seconds(pid);
  const double begin = wall_seconds();
  std::vector<int> stored(agents);
  std::vector<std::thread> feeders;
  for (size_t i = 0; i < agents; ++i) {
    feeders.emplace_back([&collector, &pages, &stored, i] {
      stored[i] =
          feed_collector(collector.ingest_port(), kFirstPid + static_cast<uint32_t>(i), pages);
    });
  }
  for (std::thread& feeder : feeders) feeder.join();
  const double wall = wall_seconds() - begin;
  const double cpu = process_cpu_seconds(pid) - cpu_before;
  if (static_cast<size_t>(std::count(stored.begin(), stored.end(), 1)) != agents) {
    std::printf("the collector did not store and seal everything\n%s\n",
                collector.process().errors().c_str());
    std::exit(1);
  }
  collector.stop();  // names are written after the seal
  std::filesystem::remove_all(directory + "/root");
  const double gb = static_cast<double>(pages.stored_bytes * agents) * 1e-9;
  return {gb / wall, cpu / gb};
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

void measure(const std::string& directory, size_t agents, uint64_t bytes, int repeats) {
  const PreparedPages pages = prepare_pages(bytes / agents);
  std::vector<double> os_rate, fsync_rate, os_cpu, fsync_cpu, rate_ratio, cpu_ratio;
  for (int i = 0; i < repeats; ++i) {
    const Run os = run(directory, "os", agents, pages);
    const Run fsync = run(directory, "fsync", agents, pages);
    os_rate.push_back(os.gb_per_second);
    fsync_rate.push_back(fsync.gb_per_second);
    os_cpu.push_back(os.cpu_per_gb);
    fsync_cpu.push_back(fsync.cpu_per_gb);
    rate_ratio.push_back(fsync.gb_per_second / os.gb_per_second);
    cpu_ratio.push_back(fsync.cpu_per_gb / os.cpu_per_gb);
  }
  const std::string who = std::to_string(agents) + (agents == 1 ? " agent" : " agents");
  mention("fsync / os, throughput, " + who, median(rate_ratio), "x");
  mention("fsync / os, CPU per GB, " + who, median(cpu_ratio), "x");
  mention("  os, until sealed", median(os_rate), "GB/s");
  mention("  fsync, until sealed", median(fsync_rate), "GB/s");
  mention("  os", median(os_cpu), "CPU-s/GB");
  mention("  fsync", median(fsync_cpu), "CPU-s/GB");
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  using namespace collect::bench;
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_durability MEGABYTES REPEATS DIRECTORY…\n");
    return 2;
  }
  const uint64_t bytes = std::strtoull(argv[1], nullptr, 10) * 1'000'000;
  const int repeats = std::atoi(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string directory = std::string(argv[i]) + "/collect_bench_durability";
    std::filesystem::create_directories(directory);
    for (const size_t agents : {1, 4, 16}) measure(directory, agents, bytes, repeats);
    std::filesystem::remove_all(directory);
  }
  return 0;
}
