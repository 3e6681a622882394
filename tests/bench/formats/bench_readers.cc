// How fast index files are read: one core, bytes in memory beyond every cache, through the public
// readers.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "formats/atf/reader.h"
#include "formats/atf/session_reader.h"
#include "formats/atf/writer.h"
#include "tests/bench/contract.h"

namespace collect::bench {
namespace {

constexpr uint64_t kEvents = 8u << 20;  // 256 MiB

std::vector<uint8_t> index_file(atf::Version version, uint64_t count, uint64_t first_ns) {
  std::vector<uint8_t> file(atf::kHeaderBytes + count * atf::kEventBytes);
  atf::IndexHeader header;
  header.version = version;
  header.arch = atf::Arch::kX86_64;
  header.os = atf::Os::kLinux;
  header.clock = atf::ClockType::kBoottime;
  atf::encode_index_header(header, atf::HeaderOut(file.data(), atf::kHeaderBytes));
  for (uint64_t i = 0; i < count; ++i) {
    atf::IndexEvent event;
    event.timestamp_ns = first_ns + 10 * i;
    event.function_id = i % 1000;
    event.kind = i % 2 == 0 ? atf::EventKind::kCall : atf::EventKind::kReturn;
    event.detail_seq = version == atf::Version::kV1 ? atf::kNoDetailV1 : atf::kNoDetail;
    encode_index_event(
        version, event,
        std::span<uint8_t, atf::kEventBytes>(file.data() + atf::kHeaderBytes + i * atf::kEventBytes,
                                             atf::kEventBytes));
  }
  return file;
}

void iterate(benchmark::State& state, atf::Version version) {
  const std::vector<uint8_t> file = index_file(version, kEvents, 1000);
  atf::Findings findings;
  const std::optional<atf::IndexReader> reader = atf::IndexReader::open(file, findings);
  if (!reader) return state.SkipWithError("the reader does not take the file");
  for (auto _ : state) {
    uint64_t calls = 0;
    uint64_t times = 0;
    reader->events().for_each([&](uint64_t, const atf::IndexEvent& event) {
      calls += event.kind == atf::EventKind::kCall;
      times += event.timestamp_ns ^ event.function_id;
    });
    benchmark::DoNotOptimize(times);
    if (calls != kEvents / 2) return state.SkipWithError("events are missing");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kEvents * atf::kEventBytes));
}

void check(benchmark::State& state, atf::Version version) {
  const std::vector<uint8_t> file = index_file(version, kEvents, 1000);
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        atf::section_checksum(version, Bytes(file).subspan(atf::kHeaderBytes)));
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kEvents * atf::kEventBytes));
}

// Four threads merged into one timeline.
void merge(benchmark::State& state) {
  constexpr uint64_t kThreads = 4;
  std::vector<std::vector<uint8_t>> data;
  std::vector<atf::ThreadFiles> files;
  for (uint32_t n = 0; n < kThreads; ++n) {
    data.push_back(index_file(atf::Version::kV2, kEvents / 16, 1000 + n));
  }
  for (uint32_t n = 0; n < kThreads; ++n) files.push_back({n, data[n], std::nullopt});
  const atf::SessionReader session(files);
  for (auto _ : state) {
    uint64_t count = 0;
    atf::MergedEvent event;
    atf::MergedCursor cursor = session.merged();
    while (cursor.next(event)) ++count;
    if (count != kThreads * kEvents / 16) return state.SkipWithError("events are missing");
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(state.iterations() * kThreads * kEvents / 16 * atf::kEventBytes));
}

BENCHMARK_CAPTURE(iterate, atf_v1, atf::Version::kV1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(iterate, atf_v2, atf::Version::kV2)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check, crc32_v1, atf::Version::kV1)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(check, crc32c_v2, atf::Version::kV2)->Unit(benchmark::kMillisecond);
BENCHMARK(merge)->Unit(benchmark::kMillisecond);

// Keeps the slower of the two iterations, which the contract is about.
class Slowest : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto rate = run.counters.find("bytes_per_second");
      if (run.benchmark_name().rfind("iterate", 0) != 0 || rate == run.counters.end()) continue;
      const double gb = rate->second.value * 1e-9;
      if (slowest_gb_s == 0 || gb < slowest_gb_s) slowest_gb_s = gb;
    }
  }
  double slowest_gb_s = 0;
};

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  collect::bench::Slowest reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::printf("\n");
  collect::bench::report("ATF iteration, one core", reporter.slowest_gb_s,
                         collect::bench::Side::kAtLeast, 1.0, "GB/s");
  return reporter.slowest_gb_s > 0 ? 0 : 1;
}
