// WTF-trace, format version 10: events per second written and read, scope enter and leave in pairs
// without arguments, which is what a function trace is made of. One core; a read goes over bytes in
// memory.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <vector>

#include "formats/wtf/binary/reader.h"
#include "formats/wtf/binary/writer.h"
#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"

namespace collect::bench {
namespace {

constexpr uint64_t kPairs = 4u << 20;  // 8 bytes an event: 64 MiB
constexpr uint32_t kFunctions = 1000;

class CountingSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    benchmark::DoNotOptimize(bytes.data());
    total += bytes.size();
    return {};
  }
  uint64_t total = 0;
};

// Calls of up to five deep, 500 ns apart.
bool write_pairs(ByteSink& sink, uint64_t pairs) {
  wtf::Writer writer(sink);
  bool good = writer.begin(wtf::FileHeader{}).ok();
  const auto zone = writer.create_zone(wtf::thread_zone_name("bench", 1, "main", 1));
  good = good && zone.ok() && writer.set_zone(*zone).ok();
  std::vector<uint32_t> types;
  for (uint32_t i = 0; i < kFunctions; ++i) {
    types.push_back(writer.define_scope("function" + std::to_string(i)).value());
  }
  uint64_t ns = 0;
  for (uint64_t i = 0; i < pairs; i += 5) {
    for (uint64_t n = 0; n < 5; ++n) {
      good = writer.enter(types[(i * 7 + n) % kFunctions], ns += 500).ok() && good;
    }
    for (uint64_t n = 0; n < 5; ++n) good = writer.leave(ns += 500).ok() && good;
  }
  return writer.finish().ok() && good;
}

std::vector<uint8_t> file_of_pairs(uint64_t pairs) {
  VectorSink sink;
  write_pairs(sink, pairs);
  return sink.bytes();
}

void count_events(benchmark::State& state, uint64_t events_per_round) {
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * events_per_round));
}

void write(benchmark::State& state) {
  uint64_t bytes = 0;
  for (auto _ : state) {
    CountingSink sink;
    if (!write_pairs(sink, kPairs)) return state.SkipWithError("the writer refused something");
    bytes += sink.total;
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  count_events(state, (kPairs + 4) / 5 * 10);
}

void read(benchmark::State& state) {
  const std::vector<uint8_t> file = file_of_pairs(kPairs);
  for (auto _ : state) {
    wtf::Findings findings;
    auto reader = wtf::Reader::open(file, findings);
    if (!reader) return state.SkipWithError("the reader does not take the file");
    uint64_t events = 0;
    uint64_t sum = 0;
    for (wtf::Event event; (*reader)->next(event); ++events) {
      sum += event.time_us ^ event.type->wire_id;
    }
    benchmark::DoNotOptimize(sum);
    if (events != (kPairs + 4) / 5 * 10) return state.SkipWithError("events are missing");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file.size()));
  count_events(state, (kPairs + 4) / 5 * 10);
}

void check(benchmark::State& state) {
  const std::vector<uint8_t> file = file_of_pairs(kPairs);
  for (auto _ : state) {
    const wtf::FileReport report = wtf::check_file(file);
    if (report.grade != wtf::Grade::kOk) return state.SkipWithError("the file is not whole");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file.size()));
  count_events(state, (kPairs + 4) / 5 * 10);
}

void to_json(benchmark::State& state) {
  const std::vector<uint8_t> file = file_of_pairs(kPairs / 16);
  for (auto _ : state) {
    CountingSink sink;
    wtf::Findings findings;
    if (!wtf::binary_to_json(file, {}, sink, findings)) return state.SkipWithError("refused");
  }
  count_events(state, (kPairs / 16 + 4) / 5 * 10);
}

void from_json(benchmark::State& state) {
  VectorSink text;
  wtf::Findings findings;
  if (!wtf::binary_to_json(file_of_pairs(kPairs / 16), {}, text, findings)) {
    return state.SkipWithError("refused");
  }
  for (auto _ : state) {
    CountingSink sink;
    if (!wtf::json_to_binary(text.bytes(), sink, findings)) return state.SkipWithError("refused");
  }
  count_events(state, (kPairs / 16 + 4) / 5 * 10);
}

BENCHMARK(write)->Name("wtf_write_scope_pairs")->Unit(benchmark::kMillisecond);
BENCHMARK(read)->Name("wtf_read_scope_pairs")->Unit(benchmark::kMillisecond);
BENCHMARK(check)->Name("wtf_check_scope_pairs")->Unit(benchmark::kMillisecond);
BENCHMARK(to_json)->Name("wtf_binary_to_json")->Unit(benchmark::kMillisecond);
BENCHMARK(from_json)->Name("wtf_json_to_binary")->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace collect::bench

BENCHMARK_MAIN();
