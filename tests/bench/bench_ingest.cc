// What collectord's ingest costs: CPU seconds for each GB of records that it stores, beside a bare
// read + write sink that gets the same records over loopback. Everything is checked, sealing is
// within the collector's figure, and so are its containers.
//
// bench_ingest MEGABYTES REPEATS DIRECTORY…
//
// The collector gets the records as agents of this machine send them (encoded), and as they are.
// Each round takes all of them, beginning with another one; the first round does not count; ratios
// are of one round.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/bench/contract.h"
#include "tests/bench/cpu_time.h"
#include "tests/bench/feeder.h"
#include "tests/bench/warm_memory.h"
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

// What the directory is on, and what the contract promises for that.
struct Place {
  std::string name = "disk";
  double promised = 0.95;
};

Place place_of(const std::string& directory) {
  const std::string path = std::filesystem::canonical(directory).string();
  std::ifstream mounts("/proc/self/mounts");
  Place place;
  size_t longest = 0;
  std::string line;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string device, mounted, kind, options;
    words >> device >> mounted >> kind >> options;
    const bool is_above = mounted == "/" || path == mounted || path.starts_with(mounted + "/");
    if (!is_above || mounted.size() < longest) continue;
    longest = mounted.size();
    const size_t huge = options.find("huge=");
    const bool has_huge = huge != std::string::npos && options.compare(huge, 10, "huge=never") != 0;
    if (kind == "tmpfs" && has_huge) {
      place = {"tmpfs with huge pages", 0.6};
    } else if (kind == "tmpfs") {
      place = {"tmpfs", 1.1};
    } else {
      place = {kind, 0.95};
    }
  }
  return place;
}

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[numbers.size() / 2];
}

std::vector<double> ratios(const std::vector<Cost>& ours, const std::vector<Cost>& others) {
  std::vector<double> all;
  for (size_t i = 0; i < ours.size(); ++i) {
    all.push_back(ours[i].cpu_per_gb / others[i].cpu_per_gb);
  }
  return all;
}

void mention_cost(const std::string& who, const std::vector<Cost>& costs) {
  std::vector<double> cpu, rate;
  for (const Cost& cost : costs) {
    cpu.push_back(cost.cpu_per_gb);
    rate.push_back(cost.gb_per_second);
  }
  mention("  " + who, median(cpu), "CPU-s/GB");
  mention("  " + who + ", until sealed", median(rate), "GB/s");
}

void measure(const std::string& directory, int connections, uint64_t bytes, int repeats) {
  const uint64_t each = bytes / static_cast<uint64_t>(connections);
  const PreparedPages raw = prepare_pages(each);
  const PreparedPages encoded = prepare_pages(each, Codec::kTuples);
  const std::vector<std::function<Cost()>> takes = {
      [&] { return bare_sink(directory, connections, raw); },
      [&] { return collector(directory, connections, encoded, true); },
      [&] { return collector(directory, connections, raw, true); },
      [&] { return collector(directory, connections, raw, false); },
  };
  std::vector<std::vector<Cost>> taken(takes.size());
  const int warm_up = repeats > 1 ? 1 : 0;
  for (int round = 0; round < repeats + warm_up; ++round) {
    for (size_t i = 0; i < takes.size(); ++i) {
      const size_t which = (i + static_cast<size_t>(round)) % takes.size();
      warm_memory(bytes + bytes / 2);
      const Cost cost = takes[which]();
      if (round >= warm_up) taken[which].push_back(cost);
    }
  }
  const Place place = place_of(directory);
  const std::string where =
      place.name + ", " + std::to_string(connections) + (connections == 1 ? " stream" : " streams");
  report("ingest / bare sink, CPU per GB, " + where, median(ratios(taken[1], taken[0])),
         Side::kAtMost, place.promised, "x");
  report("  the same of pages that come raw", median(ratios(taken[2], taken[0])), Side::kAtMost,
         place.promised, "x");
  mention("  the same without containers", median(ratios(taken[3], taken[0])), "x");
  mention("  bytes of raw pages / as agents send them",
          static_cast<double>(raw.bytes.size()) / static_cast<double>(encoded.bytes.size()), "x",
          1);
  mention_cost("bare sink", taken[0]);
  mention_cost("collectord, as agents send", taken[1]);
  mention_cost("collectord, raw pages", taken[2]);
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
    for (const int connections : {1, 4, 8}) {
      measure(directory, connections, bytes, repeats);
    }
    std::filesystem::remove_all(directory);
  }
  return 0;
}
