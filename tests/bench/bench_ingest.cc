// What collectord's ingest costs: CPU seconds per GB stored, against a bare read + write sink that
// gets the same bytes over loopback in the same run. Sealing is within the collector's figure.
//
// bench_ingest MEGABYTES REPEATS DIRECTORY…
#include <linux/magic.h>
#include <sys/vfs.h>

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

struct Cost {
  double cpu_per_gb = 0;
  double gb_per_second = 0;
};

Cost cost(double cpu, double wall, uint64_t bytes) {
  const double gb = static_cast<double>(bytes) * 1e-9;
  return {cpu / gb, gb / wall};
}

Cost bare_sink(const std::string& directory, int connections, const PreparedPages& pages) {
  std::vector<std::unique_ptr<BareSink>> sinks;
  for (int i = 0; i < connections; ++i) {
    sinks.push_back(std::make_unique<BareSink>(directory + "/sink_" + std::to_string(i)));
  }
  const double begin = wall_seconds();
  std::vector<std::thread> feeders;
  for (const auto& sink : sinks) {
    feeders.emplace_back([&sink, &pages] { feed_sink(sink->port(), pages); });
  }
  for (std::thread& feeder : feeders) feeder.join();
  double cpu = 0;
  for (const auto& sink : sinks) cpu += sink->finish();
  const double wall = wall_seconds() - begin;
  for (int i = 0; i < connections; ++i) {
    std::filesystem::remove(directory + "/sink_" + std::to_string(i));
  }
  return cost(cpu, wall, pages.bytes.size() * static_cast<uint64_t>(connections));
}

Cost collector(const std::string& directory, int connections, const PreparedPages& pages,
               bool with_rtc) {
  e2e::Scratch scratch;
  e2e::CollectorProcess collector(scratch, {"--rtc", with_rtc ? "true" : "false"},
                                  directory + "/root");
  const pid_t pid = collector.process().pid();
  const double cpu_before = process_cpu_seconds(pid);
  const double begin = wall_seconds();
  std::vector<std::thread> feeders;
  std::vector<int> stored(static_cast<size_t>(connections));
  for (size_t i = 0; i < stored.size(); ++i) {
    feeders.emplace_back([&collector, &pages, &stored, i] {
      stored[i] =
          feed_collector(collector.ingest_port(), kFirstPid + static_cast<uint32_t>(i), pages);
    });
  }
  for (std::thread& feeder : feeders) feeder.join();
  const double wall = wall_seconds() - begin;
  const double cpu = process_cpu_seconds(pid) - cpu_before;
  if (std::count(stored.begin(), stored.end(), 1) != connections) {
    std::printf("the collector did not store and seal everything\n%s\n",
                collector.process().errors().c_str());
    std::exit(1);
  }
  collector.stop();  // names are written after the seal
  std::filesystem::remove_all(directory + "/root");
  return cost(cpu, wall, pages.stored_bytes * static_cast<uint64_t>(connections));
}

std::string kind_of(const std::string& directory) {
  struct statfs status{};
  if (statfs(directory.c_str(), &status) != 0) return "unknown";
  return status.f_type == TMPFS_MAGIC ? "tmpfs" : "disk";
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

void measure(const std::string& directory, int connections, uint64_t bytes, int repeats) {
  const PreparedPages pages = prepare_pages(bytes / static_cast<uint64_t>(connections));
  std::vector<double> bare, ours, ratio, bare_rate, rate, rtc_ratio;
  for (int i = 0; i < repeats; ++i) {
    const Cost sink = bare_sink(directory, connections, pages);
    const Cost full = collector(directory, connections, pages, false);
    const Cost with_rtc = collector(directory, connections, pages, true);
    rtc_ratio.push_back(with_rtc.cpu_per_gb / sink.cpu_per_gb);
    bare.push_back(sink.cpu_per_gb);
    ours.push_back(full.cpu_per_gb);
    ratio.push_back(full.cpu_per_gb / sink.cpu_per_gb);
    bare_rate.push_back(sink.gb_per_second);
    rate.push_back(full.gb_per_second);
  }
  const std::string where = kind_of(directory) + ", " + std::to_string(connections) +
                            (connections == 1 ? " connection" : " connections");
  report("ingest / bare sink, CPU per GB, " + where, median(ratio), Side::kAtMost, 1.1, "x");
  report("  with RTC containers too", median(rtc_ratio), Side::kAtMost, 2.0, "x");
  mention("  collectord", median(ours), "CPU-s/GB");
  mention("  bare sink", median(bare), "CPU-s/GB");
  mention("  collectord, until sealed", median(rate), "GB/s");
  mention("  bare sink", median(bare_rate), "GB/s");
}

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  using namespace collect::bench;
  if (argc < 4) {
    std::fprintf(stderr, "usage: bench_ingest MEGABYTES REPEATS DIRECTORY…\n");
    return 2;
  }
  const uint64_t bytes = std::strtoull(argv[1], nullptr, 10) * 1'000'000;
  const int repeats = std::atoi(argv[2]);
  for (int i = 3; i < argc; ++i) {
    const std::string directory = std::string(argv[i]) + "/collect_bench_ingest";
    std::filesystem::create_directories(directory);
    for (const int connections : {1, 4}) {
      measure(directory, connections, bytes, repeats);
    }
    std::filesystem::remove_all(directory);
  }
  return 0;
}
