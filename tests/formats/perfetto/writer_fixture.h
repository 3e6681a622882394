// What the tests of the writer share: packets as they lie in the runs that it passes on.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "formats/core/encoding/leb128.h"
#include "formats/perfetto/writer.h"

namespace collect::perfetto {

using Raw = std::vector<uint8_t>;

class Runs final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    runs.emplace_back(bytes.begin(), bytes.end());
    return {};
  }
  std::vector<Raw> runs;
};

// The packets of a run, without tag and length.
inline std::vector<Raw> packets_of(const Raw& run) {
  std::vector<Raw> packets;
  for (size_t at = 0; at < run.size();) {
    EXPECT_EQ(run[at], 0x0a);
    const auto length = read_uleb128(Bytes(run).subspan(at + 1));
    at += 1 + length.size;
    packets.emplace_back(run.begin() + static_cast<ptrdiff_t>(at),
                         run.begin() + static_cast<ptrdiff_t>(at + length.value));
    at += length.value;
  }
  return packets;
}

class PerfettoWriter : public ::testing::Test {
 protected:
  std::vector<Raw> finish() {
    EXPECT_TRUE(writer_.finish().ok());
    return runs_.runs.empty() ? std::vector<Raw>() : packets_of(runs_.runs.front());
  }
  void call(uint64_t ns, uint32_t function) {
    writer_.begin_call(ns, function, [&] { return std::string_view("f"); });
  }

  Runs runs_;
  Writer writer_{runs_};
};

}  // namespace collect::perfetto
