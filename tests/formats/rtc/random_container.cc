#include "tests/formats/rtc/random_container.h"

#include <array>

#include "formats/core/encoding/leb128.h"
#include "formats/rtc/meta/value.h"

namespace collect::rtc::testing {

RandomContainer::RandomContainer(const Plan& plan)
    : plan_(plan), random_(plan.seed), writer_(Writer::create(sink_, plan.options).value()) {}

void RandomContainer::open(StreamInfo info) {
  Open stream;
  stream.name = info.name;
  stream.clock = info.clock;
  stream.length = info.length;
  const auto id = writer_.open_stream(std::move(info));
  if (!id) {
    // The smallest units are full after a few streams; any other refusal is a fault.
    COLLECT_CHECK(id.code() == Code::kLimit);
    return;
  }
  stream.id = id.value();
  streams_.push_back(std::move(stream));
}

void RandomContainer::open_some_stream() {
  static constexpr const char* kFormats[] = {"raw", "utf-8", "json", "uint16le", "png"};
  StreamInfo info;
  info.name = "s" + std::to_string(streams_.size());
  info.format = Format::parse(kFormats[below(std::size(kFormats))]);
  const uint64_t clock = below(4);
  if (clock == 1) info.clock = "clk";
  if (clock == 2) info.clock = "clk delta";
  if (clock == 3) info.clock = "cycles";
  if (plan_.fixed_lengths && below(3) == 0) {
    static constexpr uint32_t kLengths[] = {1, 2, 12, 16, 100, 255};
    info.length = kLengths[below(std::size(kLengths))];
  }
  if (below(4) == 0) info.extra.emplace_back("note", "{\"by\":[1,2.5,\"\\u00e4\"]}");
  open(std::move(info));
}

std::optional<int64_t> RandomContainer::time_of(const std::string& clock) const {
  if (clock == "clk") return clk_;
  if (clock == "clk delta") return delta_;
  if (clock == "cycles") return cycles_;
  return std::nullopt;
}

void RandomContainer::tick() {
  now_ns_ += static_cast<int64_t>(below(2000)) * 1000;
  const uint64_t which = below(6);
  if (which == 0 || !clk_) {
    std::array<uint8_t, kTimespecBytes> value;
    encode_timespec_ns(static_cast<uint64_t>(now_ns_), value);
    COLLECT_CHECK(writer_.write(clk_id_, value).ok());
    clk_ = now_ns_;
  } else if (which < 5) {
    uint8_t value[kLeb128MaxBytes];
    const auto us = static_cast<uint64_t>(now_ns_ - *clk_) / 1000;
    COLLECT_CHECK(writer_.write(delta_id_, Bytes(value, write_uleb128(value, us))).ok());
    delta_ = *clk_ + static_cast<int64_t>(us) * 1000;
  } else {
    uint8_t value[8];
    const auto cycles = static_cast<uint64_t>(now_ns_ - 1609772400000000000) / 10;
    store_le(value, cycles);
    COLLECT_CHECK(writer_.write(cycles_id_, value).ok());
    cycles_ = static_cast<int64_t>(cycles) * 10;
  }
}

void RandomContainer::write_some() {
  Open& stream = streams_[below(streams_.size())];
  size_t size = below(8) == 0 ? below(plan_.max_object_bytes + 1) : below(60);
  if (stream.length) size = *stream.length * (1 + below(below(10) == 0 ? 40 : 3));
  std::vector<uint8_t> data(size);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(below(3) == 0 ? 0xB9 : below(256));
  const bool more = below(5) == 0;
  if (!stream.unfinished) stream.object = {stream.name, {}, time_of(stream.clock)};
  stream.object.data.insert(stream.object.data.end(), data.begin(), data.end());
  stream.unfinished = more;
  const Status written = writer_.write(stream.id, data, more);
  COLLECT_CHECK(written.ok());
  if (!more) made_.objects.push_back(stream.object);
}

Made RandomContainer::make() {
  StreamInfo clk;
  clk.name = "clk";
  clk.is_clock = true;
  clk.format = Format::parse("timespec");
  if (below(2) == 0) clk.length = 12;
  clk_id_ = writer_.open_stream(clk).value();
  StreamInfo delta;
  delta.name = "clk delta";
  delta.is_clock = true;
  delta.format = Format::parse("uleb128");
  delta.gain = 1e-6;
  delta.delta = "clk";
  delta_id_ = writer_.open_stream(delta).value();
  StreamInfo cycles;
  cycles.name = "cycles";
  cycles.is_clock = true;
  cycles.format = Format::parse("uint64le");
  cycles.gain = 1e-8;
  cycles_id_ = writer_.open_stream(cycles).value();
  open_some_stream();
  open_some_stream();
  for (size_t i = 0; i < plan_.operations; ++i) {
    const uint64_t what = below(100);
    if (what < 30) {
      tick();
    } else if (what < 31 && plan_.open_late) {
      open_some_stream();
    } else if (what < 32) {
      COLLECT_CHECK(writer_.flush().ok());
    } else if (!streams_.empty()) {
      write_some();
    }
  }
  made_.units = writer_.units();
  if (plan_.finish) {
    COLLECT_CHECK(writer_.finish().ok());
  } else {
    COLLECT_CHECK(writer_.flush().ok());
  }
  made_.file = sink_.bytes();
  return std::move(made_);
}

}  // namespace collect::rtc::testing
