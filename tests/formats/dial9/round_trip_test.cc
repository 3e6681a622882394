// read(write(x)) == x on seeded random content: every type, optional or not, boundary numbers,
// times around the largest delta, sparse type ids, annotations, headers inside the stream.
#include <gtest/gtest.h>

#include "tests/formats/dial9/random_stream.h"
#include "tests/formats/dial9/recorded.h"

namespace collect::dial9 {
namespace {

using testing::random_stream;
using testing::RandomContent;
using testing::RandomStream;
using testing::record;
using testing::Recorder;
using testing::without_ids;

TEST(RoundTrip, RandomStreams) {
  size_t events = 0;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const RandomStream written = random_stream(seed);
    const Recorder seen = record(written.bytes);
    ASSERT_EQ(seen.rule, Rule::kNone) << seed;
    ASSERT_EQ(seen.headers, written.headers) << seed;
    ASSERT_EQ(seen.events.size(), written.events.size()) << seed;
    for (size_t i = 0; i < seen.events.size(); ++i) {
      ASSERT_EQ(without_ids(seen.events[i]), written.events[i]) << seed << " event " << i;
    }
    events += seen.events.size();
  }
  EXPECT_GT(events, 5000u);
}

// What was read is written again, and then again: the second and the third stream are equal.
TEST(RoundTrip, WritingWhatWasReadSettles) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<uint8_t> bytes = random_stream(seed, 1).bytes;
    std::vector<std::vector<uint8_t>> generations;
    for (int i = 0; i < 3; ++i) {
      const Recorder seen = record(bytes);
      Encoder encoder;
      for (const OwnedEvent& event : seen.events) {
        const Result<EventType> type = encoder.define(event.schema);
        ASSERT_TRUE(type.ok());
        ASSERT_TRUE(encode(encoder, type.value(), event));
      }
      bytes = encoder.take();
      generations.push_back(bytes);
    }
    ASSERT_EQ(generations[1], generations[2]) << seed;
  }
}

// Refused and aborted events between the others change nothing at all.
TEST(RoundTrip, RefusedEventsLeaveNoTrace) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomContent content(seed);
    Schema schema = content.schema(3);
    schema.fields.push_back({"last", FieldType::kU8, false});
    schema.has_timestamp = true;
    Encoder plain;
    Encoder disturbed;
    const EventType type = *plain.define(schema);
    const EventType same = *disturbed.define(schema);
    uint64_t clock = 0;
    for (int i = 0; i < 20; ++i) {
      const OwnedEvent event = content.event(schema, clock);
      OwnedEvent broken = event;
      switch (content.below(3)) {
        case 0:
          broken.values.pop_back();
          break;
        case 1:
          broken.values.back() = {FieldType::kU16, {}};
          broken.values.back().content = uint64_t{5};
          break;
        default:
          broken.values.push_back(broken.values.back());
          break;
      }
      ASSERT_FALSE(encode(disturbed, same, broken));
      ASSERT_TRUE(encode(disturbed, same, event));
      ASSERT_TRUE(encode(plain, type, event));
    }
    // The strings of a refused event are defined by the next one, in the same frame and order.
    ASSERT_EQ(plain.take(), disturbed.take()) << seed;
  }
}

// Content that its type cannot have is no value: an optional field is absent then, any other field
// makes the event refused.
TEST(RoundTrip, OwnedContentOfAnotherTypeIsAbsent) {
  for (const FieldType type : {FieldType::kString, FieldType::kStringMap, FieldType::kStackFrames,
                               FieldType::kPooledString}) {
    for (const bool optional : {false, true}) {
      const OwnedEvent event{
          {0, "A", false, {{"x", type, optional}}}, std::nullopt, {{type, uint64_t{1}}}};
      Encoder encoder;
      const EventType defined = *encoder.define(event.schema);
      ASSERT_EQ(encode(encoder, defined, event), optional) << to_text(type);
      if (!optional) continue;
      const testing::Recorder seen = testing::record(encoder.bytes());
      ASSERT_EQ(seen.events.size(), 1u);
      EXPECT_EQ(seen.events[0].values[0], (OwnedValue{type, {}})) << to_text(type);
    }
  }
}

TEST(RoundTrip, OwnedFieldsByName) {
  const OwnedEvent event{
      {0,
       "A",
       false,
       {{"x", FieldType::kU8, false}, {"x", FieldType::kU8, false}, {"z", FieldType::kU8, false}}},
      std::nullopt,
      {{FieldType::kU8, uint64_t{1}},
       {FieldType::kU8, uint64_t{2}},
       {FieldType::kU8, uint64_t{3}}}};
  EXPECT_EQ(std::get<uint64_t>(event.find("x")->content), 1u);
  EXPECT_EQ(event.find("y"), nullptr);
  EXPECT_EQ(std::get<uint64_t>(event.find("z")->content), 3u);
  // A value without field, and a field without value.
  OwnedEvent shorter = event;
  shorter.schema.fields.pop_back();
  EXPECT_EQ(shorter.find("z"), nullptr);
  OwnedEvent without = event;
  without.values.pop_back();
  EXPECT_EQ(without.find("z"), nullptr);
}

}  // namespace
}  // namespace collect::dial9
