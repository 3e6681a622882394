#include "storage/export/compressed_runs.h"

#include <gtest/gtest.h>

#include <vector>

#include "formats/perfetto/writer.h"

namespace collect::exports {
namespace {

// More runs than there is room for at a time: they come out whole and in their order.
TEST(CompressedRuns, AreThoseThatWerePutIn) {
  std::vector<std::vector<uint8_t>> runs;
  std::vector<uint8_t> expected;
  ZlibPieces pieces;
  for (size_t i = 0; i < 60; ++i) {
    std::vector<uint8_t>& run = runs.emplace_back(1 + i * 9973 % 200'000);
    uint32_t random = static_cast<uint32_t>(i);
    for (uint8_t& byte : run)
      byte = static_cast<uint8_t>((random = random * 1664525 + 1013904223) >> 26);
    std::vector<uint8_t> packed;
    perfetto::append_compressed_run(pieces, packed, runs.back());
    expected.insert(expected.end(), packed.begin(), packed.end());
  }
  for (const size_t workers : {0u, 1u, 3u}) {
    VectorSink sink;
    CompressedRuns packer(sink, workers);
    for (const auto& run : runs) ASSERT_TRUE(packer.write(run).ok());
    ASSERT_TRUE(packer.finish().ok());
    EXPECT_TRUE(sink.bytes() == expected) << workers << " workers";
  }
}

class FullSink final : public ByteSink {
 public:
  explicit FullSink(size_t room) : room_(room) {}
  Status write(Bytes) override {
    ++writes_;
    if (writes_ > room_) return Error{Code::kIo, "full"};
    return {};
  }
  size_t writes() const { return writes_; }

 private:
  const size_t room_;
  size_t writes_ = 0;
};

TEST(CompressedRuns, StopsWritingAfterAnError) {
  const std::vector<uint8_t> run(1000, 7);
  for (const size_t workers : {0u, 1u, 2u}) {
    FullSink sink(2);
    CompressedRuns runs(sink, workers);
    Status said;
    size_t writes = 0;
    for (; writes < 100 && said.ok(); ++writes) said = runs.write(run);
    EXPECT_EQ(said.code(), Code::kIo) << workers;
    EXPECT_EQ(runs.write(run).code(), Code::kIo) << "it stays so";
    EXPECT_EQ(runs.finish().code(), Code::kIo);
    EXPECT_EQ(sink.writes(), 3u) << "two that are well, and the one that is not";
    // Three runs of each worker wait at most.
    EXPECT_EQ(writes, 3 + 3 * workers);
  }
}

}  // namespace
}  // namespace collect::exports
