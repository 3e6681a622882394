// What the encoder hands to a sink, and when; and its memory.
#include <gtest/gtest.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "formats/dial9/writer.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using testing::joined;
using testing::kHeader;
using testing::record;
using testing::Recorder;

class BreakingSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    if (taken.size() > 200) return Error{Code::kNoSpace, "full"};
    EXPECT_EQ(record(bytes).rule == Rule::kNone || !taken.empty(), true);
    taken.insert(taken.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::vector<uint8_t> taken;
};

TEST(Encoder, SinkGetsWholeFramesUntilItsError) {
  BreakingSink sink;
  Encoder encoder(sink, 64);
  const EventType type = *encoder.define({0, "A", true, {{"v", FieldType::kVarint}}});
  uint64_t written = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    encoder.begin_event(type, i);
    encoder.put_varint(i);
    if (!encoder.end_event()) break;
    ++written;
    const Recorder seen = record(sink.taken);
    if (!sink.taken.empty()) {
      ASSERT_EQ(seen.rule, Rule::kNone);
    }
  }
  EXPECT_LT(written, 100u);
  EXPECT_EQ(encoder.refusal(), Refusal::kSink);
  EXPECT_EQ(encoder.sink_status().code(), Code::kNoSpace);
  EXPECT_EQ(encoder.flush().code(), Code::kNoSpace);
}

TEST(Encoder, FlushTakesPendingPoolEntriesAlong) {
  VectorSink sink;
  Encoder encoder(sink);
  EXPECT_EQ(encoder.intern("x"), 0u);
  EXPECT_EQ(encoder.intern("y"), 1u);
  EXPECT_EQ(encoder.intern("x"), 0u);
  const std::vector<uint64_t> stack = {7};
  EXPECT_EQ(encoder.intern_stack(stack), 0u);
  ASSERT_TRUE(encoder.flush().ok());
  EXPECT_EQ(sink.bytes(),
            joined({kHeader,
                    {3, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'x', 1, 0, 0, 0, 1, 0, 0, 0, 'y'},
                    {4, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0}}));
}

TEST(Encoder, FlushWithoutASinkOnlyWritesPendingPoolEntries) {
  Encoder encoder;
  EXPECT_EQ(encoder.intern("x"), 0u);
  ASSERT_TRUE(encoder.flush().ok());
  EXPECT_EQ(encoder.take(), joined({kHeader, {3, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 'x'}}));
}

TEST(Encoder, SinkIsAskedForNothingThatIsEmpty) {
  struct Counter : ByteSink {
    Status write(Bytes) override {
      ++writes;
      return {};
    }
    int writes = 0;
  } sink;
  Encoder encoder(sink);
  ASSERT_TRUE(encoder.flush().ok());
  EXPECT_EQ(sink.writes, 1) << "the header";
  ASSERT_TRUE(encoder.flush().ok());
  EXPECT_EQ(sink.writes, 1);
}

#if defined(__GLIBC__)
TEST(Encoder, GivesItsBufferBack) {
  const auto taken = [] { return ::mallinfo2().uordblks + ::mallinfo2().hblkhd; };
  const size_t before = taken();
  for (int i = 0; i < 64; ++i) {
    VectorSink sink;
    const Encoder encoder(sink, size_t{1} << 20);
  }
  EXPECT_LT(taken(), before + (size_t{8} << 20));
}
#endif

}  // namespace
}  // namespace collect::dial9
