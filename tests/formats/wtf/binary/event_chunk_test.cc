// One chunk by hand: each word that is in it, as FORMAT.md "Layout" and "Event types" say.
#include "formats/wtf/binary/event_chunk.h"

#include <gmock/gmock.h>

#include <ranges>

#include "formats/wtf/layout.h"

namespace collect::wtf {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr uint32_t kId = 9;  // the wire id of the type

EventType type_of(std::initializer_list<Argument> arguments) {
  EventType type;
  type.wire_id = kId;
  type.name = "e";
  type.arguments = arguments;
  return type;
}

template <class Elements>
Arg array_of(const Elements& elements) {
  return Arg::array(std::span<const std::ranges::range_value_t<Elements>>(elements));
}

class EventChunkTest : public ::testing::Test {
 protected:
  // The chunk's words, behind those of its header.
  std::vector<uint32_t> words(uint32_t id = 1) {
    VectorSink sink;
    uint64_t bytes = 0;
    EXPECT_TRUE(chunk_.write(sink, id, bytes).ok());
    EXPECT_EQ(bytes, sink.bytes().size()) << "as it says";
    std::vector<uint32_t> words;
    for (size_t at = 0; at + 4 <= sink.bytes().size(); at += 4) {
      words.push_back(load_le<uint32_t>(sink.bytes().data() + at));
    }
    header_.assign(words.begin(), words.begin() + 6);
    return {words.begin() + 6, words.end()};
  }
  // The words of the events alone, where there is no text.
  std::vector<uint32_t> events() {
    std::vector<uint32_t> all = words();
    return {all.begin() + 6, all.end()};  // behind two parts
  }
  Status put(const EventType& type, uint32_t us, std::initializer_list<Arg> arguments) {
    return chunk_.put(type, us, arguments);
  }
  std::string refusal(const EventType& type, std::initializer_list<Arg> arguments) {
    const Status done = put(type, 1, arguments);
    EXPECT_FALSE(done.ok());
    if (done.ok()) return "";
    EXPECT_EQ(done.code(), Code::kInvalidArgument);
    return done.error().message;
  }

  EventChunk chunk_;
  std::vector<uint32_t> header_;
};

TEST_F(EventChunkTest, ChunkNamesItsPartsAndItsTimes) {
  const uint8_t resource[] = {1, 2, 3, 4, 5};
  EXPECT_EQ(chunk_.add_resource(0x40000, resource), 0u);
  EXPECT_EQ(chunk_.add_resource(0x40001, resource), 1u);
  chunk_.note_time(70);
  chunk_.note_time(30);
  ASSERT_TRUE(put(type_of({{ArgType::kAscii, false, "t"}}), 30, {Arg("ab")}).ok());
  EXPECT_EQ(chunk_.event_bytes(), 12u);
  EXPECT_EQ(chunk_.resource_bytes(), 10u);
  EXPECT_EQ(chunk_.other_bytes(), 13u) << "the text with its NUL, and the resources";
  const std::vector<uint32_t> all = words(7);
  EXPECT_THAT(header_, ElementsAre(7, 2, 24 + 4 * 12 + 4 + 2 * 8 + 12, 30, 70, 4));
  EXPECT_THAT(all, ElementsAre(0x30000, 0, 3,    //
                               0x40000, 4, 5,    // behind the string table and its padding
                               0x40001, 12, 5,   //
                               0x20002, 20, 12,  //
                               0x00006261,       // "ab\0"
                               0x04030201, 5,    //
                               0x04030201, 5,    //
                               kId, 30, 0));
}

TEST_F(EventChunkTest, AfterItIsWrittenItIsEmpty) {
  EXPECT_TRUE(chunk_.is_empty());
  const EventType type = type_of({{ArgType::kAscii, false, "t"}});
  chunk_.note_time(5);
  ASSERT_TRUE(put(type, 5, {Arg("first")}).ok());
  (void)chunk_.add_resource(0x40000, {});
  EXPECT_FALSE(chunk_.is_empty());
  EXPECT_TRUE(chunk_.has_resources());
  (void)words();
  EXPECT_TRUE(chunk_.is_empty());
  EXPECT_FALSE(chunk_.has_resources());
  EXPECT_EQ(chunk_.event_bytes(), 0u);
  EXPECT_EQ(chunk_.other_bytes(), 0u);
  ASSERT_TRUE(put(type, 6, {Arg("second")}).ok());
  chunk_.note_time(6);
  const std::vector<uint32_t> all = words();
  EXPECT_EQ(all[2], 7u) << "the table has the second text alone";
  EXPECT_EQ(all.back(), 0u) << "and it is the first in it";
  EXPECT_EQ(header_[3], 6u) << "its times are its own";
}

TEST_F(EventChunkTest, PutsSmallNumbersIntoTheLowBytes) {
  const struct {
    ArgType type;
    int64_t low;
    int64_t high;
    uint32_t low_word;
    uint32_t high_word;
  } cases[] = {
      {ArgType::kBool, 0, 1, 0, 1},
      {ArgType::kInt8, -128, 127, 0x80, 0x7F},
      {ArgType::kUint8, 0, 255, 0, 0xFF},
      {ArgType::kChar, 0, 255, 0, 0xFF},
      {ArgType::kInt16, -32768, 32767, 0x8000, 0x7FFF},
      {ArgType::kUint16, 0, 65535, 0, 0xFFFF},
      {ArgType::kWchar, 0, 65535, 0, 0xFFFF},
      {ArgType::kInt32, INT32_MIN, INT32_MAX, 0x80000000, 0x7FFFFFFF},
      {ArgType::kUint32, 0, UINT32_MAX, 0, 0xFFFFFFFF},
      {ArgType::kFlowId, 0, UINT32_MAX, 0, 0xFFFFFFFF},
      {ArgType::kTime32, 0, UINT32_MAX, 0, 0xFFFFFFFF},
  };
  for (const auto& one : cases) {
    const EventType type = type_of({{one.type, false, "n"}});
    EXPECT_THAT(refusal(type, {Arg(one.low - 1)}), HasSubstr("does not fit"));
    EXPECT_THAT(refusal(type, {Arg(one.high + 1)}), HasSubstr("does not fit"));
    EXPECT_TRUE(chunk_.is_empty());
    ASSERT_TRUE(put(type, 1, {Arg(one.low)}).ok());
    ASSERT_TRUE(put(type, 2, {Arg(one.high)}).ok());
    EXPECT_THAT(events(), ElementsAre(kId, 1, one.low_word, kId, 2, one.high_word));
  }
}

TEST_F(EventChunkTest, FloatsAreTheirBits) {
  const EventType type = type_of({{ArgType::kFloat32, false, "x"}});
  ASSERT_TRUE(put(type, 1, {Arg(1.5f)}).ok());
  ASSERT_TRUE(put(type, 2, {Arg(-2)}).ok());
  EXPECT_THAT(events(), ElementsAre(kId, 1, 0x3FC00000, kId, 2, 0xC0000000));
  EXPECT_THAT(refusal(type_of({{ArgType::kInt32, false, "n"}}), {Arg(1.5f)}),
              HasSubstr("argument 'n' (int32): a number is expected"));
}

TEST_F(EventChunkTest, StoresEachTextOnceInTheTable) {
  const EventType type = type_of({{ArgType::kAscii, false, "a"}, {ArgType::kUtf8, false, "b"}});
  ASSERT_TRUE(put(type, 1, {Arg("x"), Arg("yy")}).ok());
  ASSERT_TRUE(put(type, 2, {Arg("yy"), Arg("x")}).ok());
  ASSERT_TRUE(put(type, 3, {Arg(""), Arg(nullptr)}).ok());
  const std::vector<uint32_t> all = words();
  EXPECT_EQ(all[2], 5u) << "x, yy and their NULs";
  EXPECT_THAT(std::vector<uint32_t>(all.begin() + 8, all.end()),
              ElementsAre(kId, 1, 0, 1, kId, 2, 1, 0, kId, 3, 0xFFFFFFFE, 0xFFFFFFFF));
}

TEST_F(EventChunkTest, TextsThatAViewerCannotReadAreRefused) {
  const EventType type = type_of({{ArgType::kUtf8, false, "t"}});
  EXPECT_THAT(refusal(type, {Arg(std::string_view("a\0b", 3))}), HasSubstr("holds a NUL"));
  EXPECT_THAT(refusal(type, {Arg("\xff")}), HasSubstr("not UTF-8"));
  EXPECT_THAT(refusal(type, {Arg(5)}), HasSubstr("a text is expected"));
  const EventType any = type_of({{ArgType::kAny, false, "j"}});
  EXPECT_THAT(refusal(any, {Arg("{")}), HasSubstr("not JSON"));
  EXPECT_TRUE(put(any, 1, {Arg("{\"a\": 1}")}).ok());
}

TEST_F(EventChunkTest, ArraysAreACountAndPackedElements) {
  const EventType type = type_of({{ArgType::kUint8, true, "b"}, {ArgType::kUint16, true, "s"}});
  const uint8_t bytes[] = {1, 2, 3, 4, 5};
  const uint16_t shorts[] = {0x1111, 0x2222, 0x3333};
  ASSERT_TRUE(put(type, 1, {array_of(bytes), array_of(shorts)}).ok());
  ASSERT_TRUE(put(type, 2, {Arg::array(std::span<const uint8_t>()), Arg(nullptr)}).ok());
  EXPECT_THAT(events(), ElementsAre(kId, 1, 5, 0x04030201, 5, 3, 0x22221111, 0x3333,  //
                                    kId, 2, 0, 0xFFFFFFFF));
  EXPECT_THAT(refusal(type, {array_of(shorts), Arg(nullptr)}),
              HasSubstr("argument 'b' (uint8[]): an array of that type is expected"));
  EXPECT_THAT(refusal(type, {Arg(1), Arg(nullptr)}), HasSubstr("an array of that type"));
}

TEST_F(EventChunkTest, BytesMayBeCharsAndShortsUtf16) {
  const EventType type = type_of({{ArgType::kChar, true, "c"}, {ArgType::kWchar, true, "w"}});
  const uint8_t bytes[] = {'a'};
  const uint16_t shorts[] = {'b'};
  EXPECT_TRUE(put(type, 1, {array_of(bytes), array_of(shorts)}).ok());
  const EventType reverse = type_of({{ArgType::kUint16, true, "s"}});
  const char16_t wide[] = {u'b'};
  EXPECT_FALSE(put(reverse, 1, {array_of(wide)}).ok());
}

TEST_F(EventChunkTest, RefusedEventLeavesNoBytes) {
  const EventType type = type_of({{ArgType::kUint32, false, "a"}, {ArgType::kInt8, false, "b"}});
  ASSERT_TRUE(put(type, 1, {Arg(1), Arg(2)}).ok());
  EXPECT_THAT(refusal(type, {Arg(3), Arg(400)}), HasSubstr("argument 'b' (int8)"));
  EXPECT_THAT(refusal(type, {Arg(3)}), HasSubstr("event 'e' has 2 arguments, not 1"));
  ASSERT_TRUE(put(type, 4, {Arg(5), Arg(6)}).ok());
  EXPECT_THAT(events(), ElementsAre(kId, 1, 1, 2, kId, 4, 5, 6));
}

TEST_F(EventChunkTest, PlainEventsStandBesideOthers) {
  chunk_.reserve(64);
  chunk_.put_plain(3, 10);
  ASSERT_TRUE(put(type_of({}), 11, {}).ok());
  chunk_.put_plain(4, 12);
  EXPECT_EQ(chunk_.event_bytes(), 24u);
  EXPECT_THAT(events(), ElementsAre(3, 10, kId, 11, 4, 12));
}

TEST_F(EventChunkTest, ArgumentHasALimit) {
  const EventType type = type_of({{ArgType::kUint8, true, "b"}, {ArgType::kAscii, false, "t"}});
  const std::vector<uint8_t> bytes(kMaxArgumentBytes + 1);
  EXPECT_THAT(refusal(type, {array_of(bytes), Arg(nullptr)}), HasSubstr("more than 64 MiB"));
  EXPECT_THAT(refusal(type, {Arg(nullptr), Arg(std::string(kMaxArgumentBytes + 1, 'x'))}),
              HasSubstr("more than 64 MiB"));
}

}  // namespace
}  // namespace collect::wtf
