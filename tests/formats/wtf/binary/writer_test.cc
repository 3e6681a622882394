#include "formats/wtf/binary/writer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/check.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

constexpr uint64_t kEpoch = 1'000'000'000;

class WriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(writer.begin(FileHeader{}).ok());
    zone = writer.create_zone("z").value();
    ASSERT_TRUE(writer.set_zone(zone).ok());
    scope = writer.define_scope("scope").value();
  }
  std::vector<std::string> lines() {
    Findings findings;
    auto found = testing::lines_of(sink.bytes(), findings);
    EXPECT_TRUE(findings.list().empty());
    return found;
  }
  VectorSink sink;
  Writer writer{sink, {.epoch_ns = kEpoch, .chunk_bytes = 4096}};
  uint16_t zone = 0;
  uint32_t scope = 0;
};

TEST_F(WriterTest, TimesAreMicrosecondsBehindTheEpoch) {
  ASSERT_TRUE(writer.enter(scope, kEpoch).ok());
  ASSERT_TRUE(writer.leave(kEpoch + 1'999).ok());
  ASSERT_TRUE(writer.enter(scope, kEpoch + 4294967295999).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(lines(), (std::vector<std::string>{"z | scope | 0 |", "z | wtf.scope#leave | 1 |",
                                               "z | scope | 4294967295 |",
                                               "z | wtf.scope#leave | 4294967295 |"}));
}

TEST_F(WriterTest, SaysWhenTheFileIsFull) {
  const uint64_t wrap = kEpoch + 4294967296000;
  EXPECT_TRUE(writer.takes(wrap - 1));
  EXPECT_FALSE(writer.takes(wrap));
  EXPECT_FALSE(writer.takes(kEpoch - 1));
  EXPECT_EQ(writer.enter(scope, wrap).error().code, Code::kLimit);
  EXPECT_EQ(writer.enter(scope, wrap).error().message,
            "an event 4294 s behind the timebase; a file holds 71 minutes, begin another");
  EXPECT_EQ(writer.leave(kEpoch - 1).ok(), true) << "nothing is open: dropped";
  EXPECT_EQ(writer.enter(scope, kEpoch - 1).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(writer.enter(scope, kEpoch + 5000).ok());
  EXPECT_EQ(writer.leave(wrap).error().code, Code::kLimit);
  ASSERT_TRUE(writer.enter(scope, kEpoch + 6000).ok());
  EXPECT_EQ(writer.enter(scope, wrap).error().code, Code::kLimit) << "also on the fast path";
  EXPECT_EQ(writer.leave(wrap).error().code, Code::kLimit);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(writer.stats().events, 4u);
  EXPECT_EQ(writer.stats().closed_scopes, 2u);
}

TEST_F(WriterTest, WireIdsAndZonesRunOut) {
  for (uint32_t id = scope; id < kMaxWireId; ++id) {
    ASSERT_TRUE(writer.define_instance("i" + std::to_string(id)).ok()) << id;
  }
  EXPECT_EQ(writer.define_instance("one more").code(), Code::kLimit);
  EXPECT_EQ(writer.define_scope("scope").value(), scope) << "known ones go on";
}

TEST_F(WriterTest, NamesAreUniquePerSignature) {
  const uint32_t type = writer.define_scope("f", "unsigned long n").value();
  EXPECT_EQ(writer.define_scope("f", "uint32 n").value(), type);
  EXPECT_EQ(writer.define_scope("f", "uint32 m").code(), Code::kAlreadyExists);
  EXPECT_EQ(writer.define_instance("f", "uint32 n").code(), Code::kAlreadyExists);
  for (const char* bad : {"uint64 x", "uint32 a, uint32 a", "uint32 a-b", "uint32"}) {
    EXPECT_EQ(writer.define_scope("g", bad).code(), Code::kInvalidArgument) << bad;
  }
  EXPECT_EQ(writer.define_scope("").code(), Code::kInvalidArgument);
  EXPECT_EQ(writer.define_scope("\xff").code(), Code::kInvalidArgument);
  EXPECT_EQ(writer.define_scope(std::string_view("a\0b", 3)).code(), Code::kInvalidArgument);
  for (const char* bad : {"a\nb", "a\rb", "a\u2028b", "a\u2029b"}) {
    EXPECT_EQ(writer.define_scope(bad).code(), Code::kInvalidArgument) << "it breaks the viewer";
    EXPECT_TRUE(writer.define_scope(safe_event_name(bad)).ok());
  }
  EXPECT_EQ(writer.define_scope("wtf.zone#set").code(), Code::kAlreadyExists);
  EXPECT_EQ(writer.create_zone("z").code(), Code::kAlreadyExists);
  EXPECT_TRUE(writer.create_zone("z", "script").ok());
}

TEST_F(WriterTest, LeavesMatchEnters) {
  ASSERT_TRUE(writer.leave(kEpoch + 1000).ok());
  ASSERT_TRUE(writer.enter(scope, kEpoch + 2000).ok());
  ASSERT_TRUE(writer.enter(scope, kEpoch + 3000).ok());
  const uint16_t other = writer.create_zone("other").value();
  ASSERT_TRUE(writer.set_zone(other).ok());
  ASSERT_TRUE(writer.leave(kEpoch + 4000).ok());
  ASSERT_TRUE(writer.enter(scope, kEpoch + 9000).ok());
  EXPECT_EQ(writer.depth(zone), 2u);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(writer.stats().dropped_leaves, 2u);
  EXPECT_EQ(writer.stats().closed_scopes, 3u);
  EXPECT_EQ(lines(),
            (std::vector<std::string>{"z | scope | 2 |", "z | scope | 3 |", "other | scope | 9 |",
                                      "z | wtf.scope#leave | 3 |", "z | wtf.scope#leave | 3 |",
                                      "other | wtf.scope#leave | 9 |"}));
}

// The published viewer keeps the zone from chunk to chunk, but its own writer repeats it: a chunk
// can be read alone.
TEST_F(WriterTest, EveryChunkSetsItsZone) {
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_TRUE(writer.enter(scope, kEpoch + i * 1000).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  auto reader = Reader::open(sink.bytes(), findings);
  uint64_t chunk = 0;
  for (Event event; (*reader)->next_any(event);) {
    if ((*reader)->chunks() == chunk) continue;
    if (chunk >= 2) {
      EXPECT_EQ(event.type->role, Role::kZoneSet);
    }
    chunk = (*reader)->chunks();
  }
  EXPECT_GT(chunk, 10u);
  EXPECT_EQ(chunk, writer.stats().chunks);
  EXPECT_EQ(sink.bytes().size(), writer.stats().bytes);
  EXPECT_EQ(writer.stats().max_depth, 3000u);
  EXPECT_EQ(check_file(sink.bytes()).zones[0].scopes, 3000u);
}

// From the least to the greatest time of its own events, not of the chunk before.
TEST_F(WriterTest, ChunksSayTheTimesOfTheirEvents) {
  std::vector<std::pair<uint32_t, uint32_t>> expected;
  for (const auto& times : {std::vector<uint32_t>{50}, {30, 90}, {40, 35, 45}}) {
    for (const uint32_t us : times) ASSERT_TRUE(writer.mark(kEpoch + us * 1000, "m", "1").ok());
    ASSERT_TRUE(writer.flush().ok());
    const auto [least, greatest] = std::ranges::minmax(times);
    expected.emplace_back(least, greatest);
  }
  ASSERT_TRUE(writer.finish().ok());
  std::vector<std::pair<uint32_t, uint32_t>> found;
  Findings findings;
  ChunkCursor cursor(sink.bytes(), findings);
  for (Chunk chunk; cursor.next(chunk);) {
    if (chunk.type == static_cast<uint32_t>(ChunkType::kEventData))
      found.emplace_back(chunk.start_time, chunk.end_time);
  }
  // The first has the zone's creation too, which takes no time of its own.
  EXPECT_EQ(found, expected);
}

TEST_F(WriterTest, LeaveInItsOwnChunkHasItsTime) {
  ASSERT_TRUE(writer.enter(scope, kEpoch + 10'000).ok());
  ASSERT_TRUE(writer.flush().ok());
  ASSERT_TRUE(writer.leave(kEpoch + 60'000).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  ChunkCursor cursor(sink.bytes(), findings);
  Chunk chunk;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(cursor.next(chunk));
  EXPECT_EQ(chunk.start_time, 60u);
  EXPECT_EQ(chunk.end_time, 60u);
}

TEST_F(WriterTest, AnyZoneThatThereIsCanBeDeleted) {
  EXPECT_FALSE(writer.delete_zone(0, kEpoch).ok());
  EXPECT_FALSE(writer.delete_zone(zone + 1, kEpoch).ok());
  EXPECT_TRUE(writer.delete_zone(zone, kEpoch).ok());
}

// A frame is what has both of its ends.
TEST_F(WriterTest, FramesWithOneEndAreNotCounted) {
  ASSERT_TRUE(writer.start_frame(kEpoch + 1000, 1).ok());
  ASSERT_TRUE(writer.start_frame(kEpoch + 2000, 2).ok());
  ASSERT_TRUE(writer.end_frame(kEpoch + 3000, 2).ok());
  ASSERT_TRUE(writer.end_frame(kEpoch + 4000, 3).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(check_file(sink.bytes()).zones[0].frames, 1u);
}

TEST_F(WriterTest, ClosesScopesUpToTheLastPossibleTime) {
  ASSERT_TRUE(writer.enter(scope, kEpoch).ok());
  EXPECT_EQ(writer.close_scopes(kEpoch + 4294967296000).code(), Code::kLimit);
  ASSERT_TRUE(writer.close_scopes(kEpoch + 4294967295999).ok());
  EXPECT_EQ(writer.depth(zone), 0u);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(lines().back(), "z | wtf.scope#leave | 4294967295 |");
}

// C++'s char is an int8 or a uint8; either goes into an array of the same and of char.
TEST_F(WriterTest, ArraysOfCharFitWhereTheirElementsDo) {
  const char letters[] = {'a', 'b'};
  const int8_t small[] = {1};
  const uint8_t bytes[] = {200};
  const Arg text = Arg::array(std::span<const char>(letters));
  const auto takes = [&](const char* signature, const Arg& arg) {
    const uint32_t type = writer.define_instance(signature, signature).value();
    return writer.event(type, kEpoch, {arg}).ok();
  };
  constexpr bool kSigned = std::is_signed_v<char>;
  EXPECT_EQ(takes("int8[] a", text), kSigned);
  EXPECT_EQ(takes("uint8[] a", text), !kSigned);
  EXPECT_TRUE(takes("char[] a", text));
  EXPECT_TRUE(takes("char[] a", Arg::array(std::span<const int8_t>(small))));
  EXPECT_TRUE(takes("char[] a", Arg::array(std::span<const uint8_t>(bytes))));
  EXPECT_FALSE(takes("int8[] a", Arg::array(std::span<const uint8_t>(bytes))));
  EXPECT_FALSE(takes("wchar[] a", text));
  EXPECT_FALSE(takes("int16[] a", text));
}

// A scope is left by its event too; what makes zones and types is the writer's own.
TEST_F(WriterTest, BuiltinEventsDoWhatTheirCallsDo) {
  const uint32_t leave = writer.define_builtin(Role::kScopeLeave).value();
  ASSERT_TRUE(writer.event(leave, kEpoch, {}).ok());
  EXPECT_EQ(writer.stats().dropped_leaves, 1u) << "as leave() without a scope";
  ASSERT_TRUE(writer.enter(scope, kEpoch + 1000).ok());
  ASSERT_TRUE(writer.event(leave, kEpoch + 2000, {}).ok());
  EXPECT_EQ(writer.depth(zone), 0u);
  for (const Role role : {Role::kZoneCreate, Role::kZoneSet, Role::kZoneDelete}) {
    const uint32_t type = writer.define_builtin(role).value();
    const Status status = writer.event(type, kEpoch, std::initializer_list<Arg>{zone});
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("is this writer's to write"), std::string::npos);
  }
  EXPECT_EQ(writer.event(0, kEpoch, {}).error().code, Code::kInvalidArgument) << "no wire id";
  EXPECT_EQ(writer.enter(0, kEpoch).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(lines(), (std::vector<std::string>{"z | scope | 1 |", "z | wtf.scope#leave | 2 |"}));
}

TEST_F(WriterTest, TypesOfItsOwnHaveNoFlags) {
  ASSERT_TRUE(writer.define_instance("instance").ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  auto reader = Reader::open(sink.bytes(), findings);
  ASSERT_TRUE(reader.ok());
  for (Event event; (*reader)->next(event);) {
  }
  for (const char* name : {"scope", "instance"}) {
    const EventType* const type = (*reader)->types().find_name(name);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->flags, 0u) << name;
    EXPECT_EQ(type->is_scope(), std::string(name) == "scope");
  }
}

// A chunk ends with the event that fills it, with its texts and resources, and on the fast
// way too.
TEST_F(WriterTest, ChunksAreNoLargerThanTheyShallBe) {
  ASSERT_TRUE(writer.enter(scope, kEpoch).ok());
  ASSERT_TRUE(writer.set_zone(zone).ok());
  ASSERT_TRUE(writer.mark(kEpoch, std::string(3000, 'x')).ok());
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(writer.enter(scope, kEpoch).ok());
  ASSERT_TRUE(writer.flush().ok());
  ASSERT_TRUE(writer.add_binary_resource(std::vector<uint8_t>(1000)).ok());
  ASSERT_TRUE(writer.mark(kEpoch, std::string(2000, 'y')).ok());
  for (uint64_t i = 0; i < 1000; ++i) ASSERT_TRUE(writer.enter(scope, kEpoch).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  ChunkCursor cursor(sink.bytes(), findings);
  size_t chunks = 0;
  for (Chunk chunk; cursor.next(chunk); ++chunks) {
    size_t bytes = 0;
    for (const Part& part : chunk.parts) bytes += part.bytes.size();
    EXPECT_LT(bytes, 4096u + kEventHeaderBytes) << chunks;
  }
  EXPECT_GE(chunks, 4u);
}

TEST_F(WriterTest, RefusesValuesThatDoNotFit) {
  const uint32_t type =
      writer.define_instance("v", "int8 a, uint16 b, bool c, float32 f, ascii t, any j, wchar[] w")
          .value();
  const char16_t wide[] = {u'a', u'世'};
  const Arg w = Arg::array(std::span<const char16_t>(wide));
  EXPECT_TRUE(writer.event(type, kEpoch, {-128, 65535, true, 1.5f, "x", "{}", w}).ok());
  EXPECT_TRUE(writer.event(type, kEpoch, {127, 0, 0, 7, nullptr, nullptr, nullptr}).ok());
  const std::vector<std::vector<Arg>> bad = {
      {128, 0, 0, 0, "", "1", w},
      {0, -1, 0, 0, "", "1", w},
      {0, 0, 2, 0, "", "1", w},
      {0, 0, 0, "", "", "1", w},
      {0, 0, 0, 0, 5, "1", w},
      {0, 0, 0, 0, "\xff", "1", w},
      {0, 0, 0, 0, "", "{", w},
      {0, 0, 0, 0, "", "", w},
      {0, 0, 0, 0, "", "1", 5},
      {0, 0, 0, 0, "", "1"},
      {UINT64_MAX, 0, 0, 0, "", "1", w},
      {nullptr, 0, 0, 0, "", "1", w},
      {0, 0, 0, 0, "", "1", Arg::array(std::span<const uint8_t>())}};
  for (const auto& arguments : bad) {
    EXPECT_EQ(writer.event(type, kEpoch, arguments).error().code, Code::kInvalidArgument);
  }
  EXPECT_EQ(writer.event(9999, kEpoch, {}).error().code, Code::kInvalidArgument);
  EXPECT_EQ(writer.enter(type, kEpoch).error().code, Code::kInvalidArgument) << "no scope";
  EXPECT_EQ(writer.event(kDefineWireId, kEpoch, {1, 1, 1, "", ""}).error().code,
            Code::kInvalidArgument);
  EXPECT_EQ(writer.enter_named("a(b)", kEpoch).error().code, Code::kInvalidArgument);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(lines().size(), 2u);
  EXPECT_EQ(writer.enter(scope, kEpoch).error().code, Code::kInvalidArgument) << "finished";
}

TEST_F(WriterTest, NextFileContinuesWhereThisOneEnds) {
  const uint32_t with_args = writer.define_scope("with", "uint32 n, ascii s, uint8[] b").value();
  const uint16_t other = writer.create_zone("other", std::nullopt).value();
  ASSERT_TRUE(writer.enter(scope, kEpoch + 1000).ok());
  ASSERT_TRUE(writer.enter(with_args, kEpoch + 2000, {1, "x", nullptr}).ok());
  const WriterState state = writer.state();
  const uint64_t split = kEpoch + 5'000'000'000'000;
  EXPECT_FALSE(writer.takes(split));
  ASSERT_TRUE(writer.close_scopes(kEpoch + 4'000'000'000'000).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(lines().back(), "z | wtf.scope#leave | 4000000000 |");
  VectorSink next_sink;
  Writer next(next_sink, {.epoch_ns = split});
  ASSERT_TRUE(next.begin(FileHeader{}).ok());
  ASSERT_TRUE(next.resume(state, split).ok());
  EXPECT_EQ(next.depth(zone), 2u);
  ASSERT_TRUE(next.leave(split + 1000).ok());
  ASSERT_TRUE(next.leave(split + 2000).ok());
  ASSERT_TRUE(next.set_zone(other).ok());
  ASSERT_TRUE(next.enter(with_args, split + 3000, {2, "y", nullptr}).ok());
  ASSERT_TRUE(next.finish().ok());
  Findings findings;
  EXPECT_EQ(testing::lines_of(next_sink.bytes(), findings),
            (std::vector<std::string>{"z | scope | 0 |", "z | with | 0 | n=0 s=null b=null",
                                      "z | wtf.scope#leave | 1 |", "z | wtf.scope#leave | 2 |",
                                      "other | with | 3 | n=2 s='y' b=null",
                                      "other | wtf.scope#leave | 3 |"}));
}

TEST_F(WriterTest, ResourcesStandInTheChunkOfTheNextEvent) {
  const uint32_t use = writer.define_instance("use", "uint32 resource").value();
  for (uint32_t i = 0; i < 50; ++i) {
    const std::vector<uint8_t> bytes(1000, static_cast<uint8_t>(i));
    const auto ordinal = writer.add_binary_resource(bytes);
    ASSERT_TRUE(ordinal.ok());
    ASSERT_TRUE(writer.define_instance("more" + std::to_string(i)).ok());
    ASSERT_TRUE(writer.event(use, kEpoch, {*ordinal}).ok());
  }
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  auto reader = Reader::open(sink.bytes(), findings);
  uint8_t expected = 0;
  for (Event event; (*reader)->next(event); ++expected) {
    std::vector<Bytes> resources;
    for (const Part& part : (*reader)->chunk().parts) {
      if (part.type == static_cast<uint32_t>(PartType::kBinaryResource))
        resources.push_back(part.bytes);
    }
    const auto ordinal = static_cast<size_t>(event.argument("resource")->integer());
    ASSERT_LT(ordinal, resources.size());
    EXPECT_EQ(resources[ordinal][0], expected);
  }
  EXPECT_EQ(expected, 50);
  EXPECT_EQ(check_file(sink.bytes()).resources, 50u);
}

class BrokenSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    left_ -= static_cast<int64_t>(bytes.size());
    return left_ >= 0 ? Status() : Status(Error{Code::kNoSpace, "full"});
  }

 private:
  int64_t left_ = 2000;
};

TEST(WriterErrors, SinksWordIsFinal) {
  BrokenSink sink;
  Writer writer(sink, {.chunk_bytes = 500});
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  const uint32_t scope = writer.define_scope("s").value();
  Status status;
  for (uint64_t i = 0; i < 1000 && status.ok(); ++i) status = writer.enter(scope, i);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNoSpace);
  EXPECT_EQ(writer.enter(scope, 0).error().code, Code::kNoSpace);
  EXPECT_EQ(writer.finish().error().code, Code::kNoSpace);
}

TEST(WriterErrors, OrderOfCalls) {
  VectorSink sink;
  Writer writer(sink);
  EXPECT_FALSE(writer.define_scope("s").ok());
  EXPECT_FALSE(writer.finish().ok());
  FileHeader header;
  header.metadata = "[1]";
  EXPECT_FALSE(writer.begin(header).ok());
  header.metadata = "";
  header.context->title = "\xff";
  EXPECT_FALSE(writer.begin(header).ok());
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  EXPECT_FALSE(writer.begin(FileHeader{}).ok());
  const uint32_t scope = writer.define_scope("s").value();
  EXPECT_FALSE(writer.enter(scope, 0).ok()) << "no zone";
  EXPECT_FALSE(writer.set_zone(1).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_GE(sink.bytes().size(), kMinFileBytes);
  EXPECT_EQ(check_file(sink.bytes()).grade, Grade::kOk);
}

}  // namespace
}  // namespace collect::wtf
