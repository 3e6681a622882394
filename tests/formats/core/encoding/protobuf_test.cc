// The examples of protobuf.dev, "Encoding".
#include "formats/core/encoding/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect {
namespace {

using ::testing::ElementsAre;
using Raw = std::vector<uint8_t>;

TEST(ProtoWriter, WritesTheExamplesOfTheSpecification) {
  Raw out;
  ProtoWriter proto(out);
  proto.varint(1, 150);
  EXPECT_THAT(out, ElementsAre(0x08, 0x96, 0x01));
  out.clear();
  proto.text(2, "testing");
  EXPECT_THAT(out, ElementsAre(0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67));
  out.clear();
  const size_t inner = proto.begin(3);
  proto.varint(1, 150);
  proto.end(inner);
  EXPECT_THAT(out, ElementsAre(0x1a, 0x03, 0x08, 0x96, 0x01));
  out.clear();
  const uint64_t values[] = {3, 270, 86942};
  proto.packed(6, values, 3);
  EXPECT_THAT(out, ElementsAre(0x32, 0x06, 0x03, 0x8e, 0x02, 0x9e, 0xa7, 0x05));
  out.clear();
  proto.signed_varint(1, -2);
  EXPECT_THAT(out, ElementsAre(0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01));
  out.clear();
  proto.fixed64(5, 1);
  EXPECT_THAT(out, ElementsAre(0x29, 1, 0, 0, 0, 0, 0, 0, 0));
}

// The examples of protobuf.dev, "Encoding".
TEST(ProtoFields, ReadsTheExamplesOfTheSpecification) {
  const Raw message = {0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67, 0x1d,
                       1,    0,    0,    0,    0x21, 2,    0,    0,    0,    0,    0,    0,    0};
  ProtoFields fields(message);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.field(), 1u);
  EXPECT_EQ(fields.value(), 150u);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.field(), 2u);
  EXPECT_EQ(fields.text(), "testing");
  EXPECT_EQ(fields.offset(), 3u);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.wire(), ProtoWire::kFixed32);
  EXPECT_EQ(fields.value(), 1u);
  ASSERT_TRUE(fields.next());
  EXPECT_EQ(fields.wire(), ProtoWire::kFixed64);
  EXPECT_EQ(fields.value(), 2u);
  EXPECT_FALSE(fields.next());
  EXPECT_TRUE(fields.ok());
}

TEST(ProtoFields, RefusesWhatIsNoField) {
  for (const Raw& message :
       {Raw{0x08}, Raw{0x00, 0x01}, Raw{0x0b}, Raw{0x0c}, Raw{0x0f}, Raw{0x12, 0x02, 0x00},
        Raw{0x1d, 1, 2, 3}, Raw{0x21, 1, 2, 3}, Raw{0x80}, Raw(11, 0xff)}) {
    ProtoFields fields(message);
    EXPECT_FALSE(fields.next());
    EXPECT_FALSE(fields.ok());
    EXPECT_EQ(fields.offset(), 0u);
    EXPECT_FALSE(fields.next());
  }
}

// The length of a message takes one byte up to 127, then two.
TEST(ProtoWriter, LongMessageMovesForItsLength) {
  for (const size_t bytes : {size_t{125}, size_t{126}, size_t{16381}}) {
    Raw out;
    ProtoWriter proto(out);
    const size_t at = proto.begin(1);
    proto.text(1, std::string(bytes, 'x'));
    proto.end(at);
    const size_t text = bytes + 1 + uleb128_size(bytes);
    ASSERT_EQ(out.size(), 1 + uleb128_size(text) + text);
    EXPECT_EQ(read_uleb128(Bytes(out).subspan(1)).value, text);
    EXPECT_EQ(out[1 + uleb128_size(text)], 0x0a);
    EXPECT_EQ(out.back(), 'x');
  }
}

}  // namespace
}  // namespace collect
