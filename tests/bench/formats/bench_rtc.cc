// How fast containers are written and read: one core, through the public writer and reader, with
// the Crc computed and verified. The objects are those of a live capture: pages of 64 KiB, blocks
// of 1 KiB, and events of 16 bytes. Throughput counts payload bytes.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/rtc/meta/value.h"
#include "formats/rtc/read/reader.h"
#include "formats/rtc/writer.h"

namespace collect::bench {
namespace {

constexpr size_t kFileBytes = size_t{256} << 20;

// Takes the bytes as a file in memory would, without growing.
class MemorySink final : public ByteSink {
 public:
  explicit MemorySink(size_t bytes) : memory_(bytes) {}
  Status write(Bytes bytes) override {
    if (bytes.size() > memory_.size() - used_) return Error{Code::kNoSpace, "full"};
    std::memcpy(memory_.data() + used_, bytes.data(), bytes.size());
    used_ += bytes.size();
    return {};
  }
  Bytes bytes() const { return Bytes(memory_).first(used_); }
  void clear() { used_ = 0; }

 private:
  std::vector<uint8_t> memory_;
  size_t used_ = 0;
};

uint64_t write_objects(ByteSink& sink, size_t object_bytes, size_t total, bool fixed_length) {
  auto writer = rtc::Writer::create(sink).value();
  rtc::StreamInfo clock;
  clock.name = "clk";
  clock.is_clock = true;
  clock.format = rtc::Format::parse("timespec");
  const uint64_t clk = writer.open_stream(clock).value();
  rtc::StreamInfo data;
  data.name = "data";
  data.clock = "clk";
  if (fixed_length) data.length = static_cast<uint32_t>(object_bytes);
  const uint64_t id = writer.open_stream(data).value();
  // From beyond the caches, as pages of a live capture come.
  static const std::vector<uint8_t> source(size_t{64} << 20, 0x5A);
  bool ok = true;
  size_t at = 0;
  for (size_t written = 0; written < total; written += object_bytes) {
    if (written % (size_t{1} << 16) < object_bytes) {
      std::array<uint8_t, rtc::kTimespecBytes> now;
      rtc::encode_timespec_ns(1000000000 + written, now);
      ok = writer.write(clk, now).ok() && ok;
    }
    ok = writer.write(id, Bytes(source).subspan(at, object_bytes)).ok() && ok;
    at = at + 2 * object_bytes > source.size() ? 0 : at + object_bytes;
  }
  ok = writer.finish().ok() && ok;
  return ok ? writer.position() : 0;
}

void write(benchmark::State& state, size_t object_bytes, bool fixed_length) {
  MemorySink sink(2 * kFileBytes);
  for (auto _ : state) {
    sink.clear();
    if (write_objects(sink, object_bytes, kFileBytes, fixed_length) == 0) {
      return state.SkipWithError("the writer failed");
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kFileBytes));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * (kFileBytes / object_bytes)));
}

void read(benchmark::State& state, size_t object_bytes, bool fixed_length, bool gather) {
  MemorySink sink(2 * kFileBytes);
  if (write_objects(sink, object_bytes, kFileBytes, fixed_length) == 0) {
    return state.SkipWithError("the writer failed");
  }
  for (auto _ : state) {
    auto reader = rtc::Reader::open(sink.bytes());
    uint64_t bytes = 0;
    uint64_t first = 0;
    rtc::Object object;
    while (reader.value().next(object)) {
      if (object.stream->is_clock) continue;
      bytes += object.size;
      const Bytes part = gather ? object.payload() : object.fragments().front();
      first += part[0];
    }
    benchmark::DoNotOptimize(first);
    if (bytes != kFileBytes) return state.SkipWithError("objects are missing");
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kFileBytes));
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * (kFileBytes / object_bytes)));
}

void seek_time(benchmark::State& state) {
  MemorySink sink(2 * kFileBytes);
  if (write_objects(sink, size_t{1} << 16, kFileBytes, false) == 0) {
    return state.SkipWithError("the writer failed");
  }
  auto reader = rtc::Reader::open(sink.bytes());
  uint64_t step = 0;
  for (auto _ : state) {
    const uint64_t time = 1000000000 + (step += 7919 * 4096) % (kFileBytes - (size_t{1} << 16));
    if (!reader.value().seek_time(static_cast<int64_t>(time))) {
      return state.SkipWithError("a time was not found");
    }
  }
}

BENCHMARK_CAPTURE(write, pages_64k, size_t{1} << 16, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, blocks_1k, size_t{1} << 10, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, events_16, 16, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, events_16_fixed, 16, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, pages_64k, size_t{1} << 16, false, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, pages_64k_gathered, size_t{1} << 16, false, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, blocks_1k, size_t{1} << 10, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, events_16, 16, false, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read, events_16_fixed, 16, true, true)->Unit(benchmark::kMillisecond);
BENCHMARK(seek_time)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace collect::bench

BENCHMARK_MAIN();
