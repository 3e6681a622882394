// dial9 per event: encoding and visiting the two published mixes, and visiting the newest real
// recording when the reference pack is there. One core, bytes in memory.
//
// The mix: five types in turn, 500 to 700 ns apart: poll start with four varints, poll end, park,
// wake, and a CPU sample with a u32, a u8 and 16 addresses; the second mix is without the sample.
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "formats/dial9/read/decoder.h"
#include "formats/dial9/writer.h"
#include "tests/bench/contract.h"

namespace collect::bench {
namespace {

using dial9::Encoder;
using dial9::EventType;
using dial9::FieldType;

constexpr uint64_t kEvents = 1'000'000;

struct Mix {
  EventType poll_start, poll_end, park, wake, sample;
};

Mix define(Encoder& encoder) {
  const auto type = [&](uint16_t id, const char* name, std::vector<dial9::Field> fields) {
    return *encoder.define({id, name, true, std::move(fields)});
  };
  const FieldType varint = FieldType::kVarint;
  return {type(0, "PollStart",
               {{"worker", varint}, {"queue", varint}, {"task", varint}, {"location", varint}}),
          type(1, "PollEnd", {{"worker", varint}}),
          type(2, "Park", {{"worker", varint}, {"queue", varint}, {"cpu_ns", varint}}),
          type(3, "Wake", {{"waker", varint}, {"woken", varint}, {"target", FieldType::kU8}}),
          type(4, "CpuSample",
               {{"tid", FieldType::kU32},
                {"source", FieldType::kU8},
                {"stack", FieldType::kStackFrames}})};
}

// False when any event was refused.
bool encode(Encoder& encoder, const Mix& mix, bool stacks) {
  uint64_t stack[16];
  for (uint64_t i = 0; i < 16; ++i) stack[i] = 0x5555'5555'0000 + i * 0x1234;
  uint64_t time = 1'000'000'000;
  bool good = true;
  const uint32_t kinds = stacks ? 5 : 4;
  uint32_t kind = 0;
  for (uint64_t i = 0; i < kEvents; ++i) {
    time += 500 + (i * 7) % 200;
    switch (kind) {
      case 0:
        encoder.begin_event(mix.poll_start, time);
        encoder.put_varint(i & 7);
        encoder.put_varint(i & 31);
        encoder.put_varint(i % 10'000);
        encoder.put_varint(i & 63);
        break;
      case 1:
        encoder.begin_event(mix.poll_end, time);
        encoder.put_varint(i & 7);
        break;
      case 2:
        encoder.begin_event(mix.park, time);
        encoder.put_varint(i & 7);
        encoder.put_varint(i & 31);
        encoder.put_varint(i * 600);
        break;
      case 3:
        encoder.begin_event(mix.wake, time);
        encoder.put_varint(i % 10'000);
        encoder.put_varint((i * 3) % 10'000);
        encoder.put_u8(static_cast<uint8_t>(i & 7));
        break;
      default:
        encoder.begin_event(mix.sample, time);
        encoder.put_u32(static_cast<uint32_t>(4711 + (i & 3)));
        encoder.put_u8(1);
        encoder.put_stack(stack);
        break;
    }
    good = encoder.end_event() && good;
    if (++kind == kinds) kind = 0;
  }
  return good;
}

void report_rate(benchmark::State& state, uint64_t events, uint64_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
  state.counters["per_event"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(events),
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["bytes/event"] = static_cast<double>(bytes) / static_cast<double>(events);
}

void encode_reused(benchmark::State& state, bool stacks) {
  std::vector<uint8_t> buffer(size_t{64} << 20);
  uint64_t bytes = 0;
  for (auto _ : state) {
    Encoder encoder{MutableBytes(buffer)};
    if (!encode(encoder, define(encoder), stacks)) return state.SkipWithError("refused");
    bytes = encoder.bytes().size();
    benchmark::DoNotOptimize(buffer.data());
  }
  report_rate(state, kEvents, bytes);
}

void encode_growing(benchmark::State& state, bool stacks) {
  uint64_t bytes = 0;
  for (auto _ : state) {
    Encoder encoder;
    if (!encode(encoder, define(encoder), stacks)) return state.SkipWithError("refused");
    bytes = encoder.bytes().size();
    benchmark::DoNotOptimize(encoder.bytes().data());
  }
  report_rate(state, kEvents, bytes);
}

// Looks at the time and at every value, as a tool would.
struct Sums : dial9::Visitor {
  void on_event(const dial9::Event& event) {
    times += event.timestamp_ns();
    for (size_t field = 0; field < event.size(); ++field) values += event[field].u64();
    ++events;
  }
  uint64_t times = 0;
  uint64_t values = 0;
  uint64_t events = 0;
};

void visit(benchmark::State& state, Bytes stream) {
  uint64_t events = 0;
  for (auto _ : state) {
    dial9::Decoder decoder;
    Sums sums;
    if (decoder.decode(stream, sums).state != dial9::DecodeState::kEnd)
      return state.SkipWithError("the stream is not read");
    benchmark::DoNotOptimize(sums);
    events = sums.events;
  }
  report_rate(state, events, stream.size());
}

void decode_mix(benchmark::State& state, bool stacks) {
  Encoder encoder;
  if (!encode(encoder, define(encoder), stacks)) return state.SkipWithError("refused");
  visit(state, encoder.bytes());
}

void decode_demo(benchmark::State& state) {
  const char* reference = std::getenv("COLLECT_REFERENCE");
  if (reference == nullptr) return state.SkipWithError("COLLECT_REFERENCE names no folder");
  const std::string path = std::string(reference) + "/data/dial9/demo-2026-05-15-96eba01.bin.gz";
  const gzFile in = gzopen(path.c_str(), "rb");
  if (in == nullptr) return state.SkipWithError("the sample is not there");
  std::vector<uint8_t> stream(size_t{8} << 20);
  const int got = gzread(in, stream.data(), static_cast<unsigned>(stream.size()));
  gzclose(in);
  if (got <= 0) return state.SkipWithError("the sample cannot be unpacked");
  visit(state, Bytes(stream).first(static_cast<size_t>(got)));
}

BENCHMARK_CAPTURE(encode_reused, with_stacks, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_reused, without_stacks, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_growing, with_stacks, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(encode_growing, without_stacks, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_mix, with_stacks, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(decode_mix, without_stacks, false)->Unit(benchmark::kMillisecond);
BENCHMARK(decode_demo)->Unit(benchmark::kMillisecond);

// What the published implementation takes for the same, in ns/event, measured on a 2-core virtual
// machine: worth a comparison by ratio, on a machine like it.
constexpr std::pair<const char*, double> kPublished[] = {{"encode_reused/with_stacks", 24.3},
                                                         {"encode_reused/without_stacks", 19.8},
                                                         {"encode_growing/with_stacks", 44},
                                                         {"encode_growing/without_stacks", 19.8},
                                                         {"decode_mix/with_stacks", 30.6},
                                                         {"decode_mix/without_stacks", 28.6},
                                                         {"decode_demo", 42.2}};

class Rates : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    ConsoleReporter::ReportRuns(runs);
    for (const Run& run : runs) {
      const auto counter = run.counters.find("per_event");
      if (run.error_occurred || counter == run.counters.end()) continue;
      rates.emplace_back(run.benchmark_name(), counter->second.value * 1e9);
    }
  }
  double of(const std::string& name) const {
    for (const auto& [run, rate] : rates) {
      if (run.rfind(name, 0) == 0) return rate;
    }
    return 0;
  }
  std::vector<std::pair<std::string, double>> rates;
};

}  // namespace
}  // namespace collect::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  collect::bench::Rates reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  std::printf("\n");
  for (const auto& [name, published] : collect::bench::kPublished) {
    const double ns = reporter.of(name);
    if (ns == 0) continue;
    collect::bench::mention(std::string("dial9 ") + name, ns, "ns/event");
    collect::bench::mention("  of the published implementation's", ns / published, "x");
  }
  return reporter.rates.empty() ? 1 : 0;
}
