// How fast events become Parquet: time, function, kind and sequence, on one core, without a disk.
// Calls nest up to 30 deep; the functions are 3,000, of which 200 make three quarters of the calls.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "formats/parquet/writer.h"

namespace collect::bench {
namespace {

constexpr size_t kEvents = 1 << 20;
constexpr size_t kBatchEvents = 4096;

struct Events {
  Events() {
    std::mt19937_64 random(1);
    uint64_t now = 1'700'000'000'000'000'000;
    std::vector<uint64_t> stack;
    for (uint64_t i = 0; i < kEvents; ++i) {
      const bool is_call = stack.empty() || (stack.size() < 30 && random() % 2 == 0);
      if (is_call) {
        const uint64_t functions = random() % 4 == 0 ? 3000 : 200;
        stack.push_back(uint64_t{3} << 32 | random() % functions);
      }
      time.push_back(now += 40 + random() % 400);
      function.push_back(stack.back());
      kind.push_back(is_call ? 1 : 2);
      sequence.push_back(i);
      if (!is_call) stack.pop_back();
    }
  }
  std::vector<uint64_t> time, function, kind, sequence;
};

// Counts what it is given.
class CountingSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    bytes_ += bytes.size();
    return {};
  }
  uint64_t bytes() const { return bytes_; }

 private:
  uint64_t bytes_ = 0;
};

void write_events(benchmark::State& state) {
  using parquet::Encoding;
  using parquet::Type;
  const Events events;
  const auto batch = [](const std::vector<uint64_t>& column, size_t from) {
    return std::span(column).subspan(from, kBatchEvents);
  };
  CountingSink sink;
  for (auto _ : state) {
    auto writer =
        parquet::Writer::create(sink, {{"time", Type::kUint64, Encoding::kDeltaBinaryPacked},
                                       {"function", Type::kUint64, Encoding::kRleDictionary},
                                       {"kind", Type::kUint64, Encoding::kRleDictionary},
                                       {"sequence", Type::kUint64, Encoding::kDeltaBinaryPacked}})
            .value();
    for (size_t at = 0; at < kEvents; at += kBatchEvents) {
      (void)writer->append({batch(events.time, at), batch(events.function, at),
                            batch(events.kind, at), batch(events.sequence, at)});
    }
    if (!writer->finish().ok()) return state.SkipWithError("the writer failed");
  }
  const auto rows = static_cast<double>(state.iterations()) * static_cast<double>(kEvents);
  state.SetItemsProcessed(static_cast<int64_t>(rows));
  state.counters["bytes_per_event"] = static_cast<double>(sink.bytes()) / rows;
}

BENCHMARK(write_events)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace collect::bench

BENCHMARK_MAIN();
