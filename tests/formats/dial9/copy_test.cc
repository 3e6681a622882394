// A copy of whole frames has what the stream has, byte for byte, up to where it breaks.
#include "formats/dial9/copy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/dial9/writer.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

// Annotations, of a type that is unknown too, pools, an event without time, two sub-streams.
std::vector<uint8_t> a_stream() {
  Encoder encoder;
  const EventType timed = *encoder.define({256, "T", true, {{"v", FieldType::kPooledString}}});
  const EventType untimed = *encoder.define({300, "U", false, {{"n", FieldType::kVarint}}});
  EXPECT_TRUE(encoder.annotate(timed, {{0, "unit", "ns"}, {0, "kind", "counter"}}).ok());
  for (int i = 0; i < 2; ++i) {
    if (i != 0) {
      EXPECT_TRUE(encoder.begin_stream());
    }
    encoder.begin_event(timed, 1'000'000'000 - static_cast<uint64_t>(i));
    encoder.put_pooled_string("text");
    EXPECT_TRUE(encoder.end_event());
    encoder.begin_event(untimed);
    encoder.put_varint(300);
    EXPECT_TRUE(encoder.end_event());
  }
  std::vector<uint8_t> bytes = encoder.take();
  const std::vector<uint8_t> unknown = {6, 99, 1, 0, 0, 0, 1, 0, 'k', 1, 0, 0, 0, 'v'};
  bytes.insert(bytes.end(), unknown.begin(), unknown.end());
  return bytes;
}

TEST(CopyFrames, KeepsEveryByteOfAWholeStream) {
  const auto stream = a_stream();
  VectorSink out;
  const auto copied = copy_frames(stream, out);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(out.bytes(), stream);
  EXPECT_EQ(copied->bytes, stream.size());
  EXPECT_EQ(copied->events, 4u);
  EXPECT_FALSE(copied->problem.has_value());
}

TEST(CopyFrames, EndsBehindTheLastWholeFrameOfEveryPrefix) {
  const auto stream = a_stream();
  for (size_t size = 0; size < stream.size(); ++size) {
    const std::vector<uint8_t> prefix(stream.begin(),
                                      stream.begin() + static_cast<ptrdiff_t>(size));
    VectorSink out;
    const auto copied = copy_frames(prefix, out);
    if (size < kHeaderBytes) {
      ASSERT_FALSE(copied.ok());
      EXPECT_TRUE(out.bytes().empty());
      continue;
    }
    ASSERT_TRUE(copied.ok()) << size;
    ASSERT_EQ(copied->bytes, out.bytes().size());
    EXPECT_TRUE(std::equal(out.bytes().begin(), out.bytes().end(), stream.begin()));
    EXPECT_EQ(copied->problem.has_value(), out.bytes().size() != size) << size;
    const testing::Recorder seen = testing::record(out.bytes());
    EXPECT_EQ(seen.rule, Rule::kNone) << size;
    EXPECT_EQ(seen.events.size(), copied->events);
  }
}

TEST(CopyFrames, DamageInTheMiddleIsNamedWithWhatFollows) {
  const auto part = a_stream();
  std::vector<uint8_t> bytes = part;
  bytes.push_back(0xEE);
  bytes.insert(bytes.end(), part.begin(), part.end());
  VectorSink out;
  uint64_t reported = UINT64_MAX;
  const auto copied = copy_frames(bytes, out, [&](uint64_t done) { reported = done; });
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(out.bytes(), part);
  EXPECT_EQ(reported, 0u);
  ASSERT_TRUE(copied->problem.has_value());
  EXPECT_EQ(copied->problem->rule, Rule::kTag);
  EXPECT_EQ(copied->next_header, part.size() + 1);
}

TEST(CopyFrames, IgnoresHeadersBeginningInTheLastFrame) {
  auto bytes = a_stream();
  bytes.insert(bytes.end(), {3, 1, 0, 0, 0, 9, 0, 0, 0, 1, 0, 0, 0, 'T'});
  const size_t whole = bytes.size();
  bytes.insert(bytes.end(), {'R', 'C', 0, 1, 'x'});
  VectorSink out;
  const auto copied = copy_frames(bytes, out);
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(copied->bytes, whole);
  EXPECT_TRUE(copied->problem.has_value());
  EXPECT_EQ(copied->next_header, std::nullopt);
}

TEST(CopyFrames, PieceThatIsJustFullIsTheLast) {
  constexpr size_t kPiece = size_t{4} << 20;
  Encoder encoder;
  const EventType type = *encoder.define({0, "T", false, {{"v", FieldType::kString}}});
  ASSERT_TRUE(encoder.announce(type));
  encoder.begin_event(type);
  encoder.put_string(std::string(kPiece - encoder.bytes().size() - 3 - 4, 'x'));
  ASSERT_TRUE(encoder.end_event());
  ASSERT_EQ(encoder.bytes().size(), kPiece);
  VectorSink out;
  std::vector<uint64_t> reported;
  ASSERT_TRUE(
      copy_frames(encoder.bytes(), out, [&](uint64_t done) { reported.push_back(done); }).ok());
  EXPECT_EQ(reported, (std::vector<uint64_t>{0}));
}

TEST(CopyFrames, SinkGetsALargeStreamInPieces) {
  constexpr size_t kPiece = size_t{4} << 20;
  Encoder encoder;
  const EventType type = *encoder.define({0, "T", false, {{"v", FieldType::kString}}});
  const std::string text(1'000'003, 'x');
  while (encoder.bytes().size() <= 2 * kPiece) {
    encoder.begin_event(type);
    encoder.put_string(text);
    ASSERT_TRUE(encoder.end_event());
  }
  VectorSink out;
  std::vector<uint64_t> reported;
  const auto copied =
      copy_frames(encoder.bytes(), out, [&](uint64_t done) { reported.push_back(done); });
  ASSERT_TRUE(copied.ok());
  EXPECT_EQ(out.bytes().size(), encoder.bytes().size());
  EXPECT_TRUE(std::ranges::equal(out.bytes(), encoder.bytes()));
  EXPECT_EQ(reported, (std::vector<uint64_t>{0, kPiece, 2 * kPiece}));
}

}  // namespace
}  // namespace collect::dial9
