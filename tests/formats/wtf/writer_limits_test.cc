// What a Writer takes up to its limits and refuses one beyond (FORMAT.md "Limits").
#include <gtest/gtest.h>

#include <algorithm>

#include "formats/wtf/binary/chunk_encoder.h"
#include "formats/wtf/binary/writer.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

class CountingSink final : public ByteSink {
 public:
  Status write(Bytes bytes) override {
    count += bytes.size();
    return {};
  }
  uint64_t count = 0;
};

class WriterLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(writer.begin(FileHeader{}).ok());
    zone = writer.create_zone("z").value();
    ASSERT_TRUE(writer.set_zone(zone).ok());
  }
  CountingSink sink;
  Writer writer{sink};
  uint16_t zone = 0;
};

std::string object_of_bytes(size_t bytes) {
  const std::string begin = R"({"timebase":0,"title":")", end = R"("})";
  return begin + std::string(bytes - begin.size() - end.size(), 'x') + end;
}

TEST(WriterHeader, IsOneObjectOfAtMostOneMiB) {
  const std::pair<std::string, bool> cases[] = {{object_of_bytes(size_t{1} << 20), true},
                                                {object_of_bytes((size_t{1} << 20) + 1), false},
                                                {"{}", true},
                                                {"[]", false},
                                                {"{} {}", false},
                                                {"{", false},
                                                {"", false}};
  for (const auto& [header, is_taken] : cases) {
    CountingSink sink;
    Writer writer(sink);
    EXPECT_EQ(writer.begin_with(header).ok(), is_taken) << header.substr(0, 9) << header.size();
    EXPECT_EQ(sink.count != 0, is_taken) << header.substr(0, 9) << header.size();
  }
}

TEST(WriterHeader, EachOfItsTextsIsUtf8) {
  using TextOf = std::string& (*)(FileHeader&);
  const TextOf texts[] = {
      [](FileHeader& header) -> std::string& { return header.flags.emplace_back(); },
      [](FileHeader& header) -> std::string& { return header.context->uri; },
      [](FileHeader& header) -> std::string& { return header.context->title; },
      [](FileHeader& header) -> std::string& { return header.context->icon_uri; },
      [](FileHeader& header) -> std::string& { return header.context->task_id; },
      [](FileHeader& header) -> std::string& { return header.context->arguments.emplace_back(); },
      [](FileHeader& header) -> std::string& { return header.context->user_agent.value; },
      [](FileHeader& header) -> std::string& { return header.context->user_agent.type; },
      [](FileHeader& header) -> std::string& { return header.context->user_agent.platform; },
      [](FileHeader& header) -> std::string& {
        return header.context->user_agent.platform_version;
      },
      [](FileHeader& header) -> std::string& { return header.context->user_agent.device; }};
  for (size_t i = 0; i < std::size(texts); ++i) {
    for (const auto& [text, is_taken] : {std::pair("é", true), {"\xFF", false}}) {
      FileHeader header;
      texts[i](header) = text;
      CountingSink sink;
      Writer writer(sink);
      EXPECT_EQ(writer.begin(header).ok(), is_taken) << i;
    }
  }
}

TEST_F(WriterLimits, ScopesAreRememberedUpToALimit) {
  const uint32_t scope = writer.define_scope("scope").value();
  for (size_t i = 0; i < kMaxRememberedScopes + 2; ++i) ASSERT_TRUE(writer.enter(scope, 0).ok());
  for (size_t depth = kMaxRememberedScopes + 2; depth > kMaxRememberedScopes - 2; --depth) {
    EXPECT_EQ(writer.depth(zone), depth);
    EXPECT_EQ(writer.state().zones[0].open.size(), std::min(depth, kMaxRememberedScopes)) << depth;
    ASSERT_TRUE(writer.leave(0).ok());
  }
}

TEST_F(WriterLimits, ArrayHas64MiB) {
  const uint32_t type = writer.define_instance("array", "uint8[] a").value();
  const std::vector<uint8_t> bytes((size_t{64} << 20) + 1);
  const auto put = [&](Bytes elements) {
    return writer.event(type, 0, {Arg::array(ArgType::kUint8, elements)}).ok();
  };
  EXPECT_FALSE(put(bytes));
  EXPECT_TRUE(put(Bytes(bytes).first(bytes.size() - 1)));
  EXPECT_EQ(writer.stats().events, 1u);
}

TEST_F(WriterLimits, TextHas64MiB) {
  const uint32_t type = writer.define_instance("text", "ascii t").value();
  const std::string text((size_t{64} << 20) + 1, 'x');
  EXPECT_FALSE(writer.event(type, 0, {text}).ok());
  EXPECT_TRUE(writer.event(type, 0, {std::string_view(text).substr(1)}).ok());
  EXPECT_EQ(writer.stats().events, 1u);
}

TEST_F(WriterLimits, ResourceHas64MiB) {
  const std::vector<uint8_t> bytes((size_t{64} << 20) + 1);
  EXPECT_EQ(writer.add_binary_resource(bytes).code(), Code::kInvalidArgument);
  EXPECT_EQ(writer.add_binary_resource(Bytes(bytes).first(bytes.size() - 1)).value(), 0u);
}

TEST_F(WriterLimits, ZonesEndAt65535) {
  for (uint32_t id = zone + 1; id <= 65535; ++id) {
    ASSERT_EQ(writer.create_zone("zone " + std::to_string(id)).value(), id);
  }
  EXPECT_EQ(writer.create_zone("one more").code(), Code::kLimit);
  EXPECT_TRUE(writer.set_zone(65535).ok());
}

TEST_F(WriterLimits, EventIsAnInstanceOrAScope) {
  EXPECT_TRUE(writer.define(0, 0, "instance", "").ok());
  EXPECT_TRUE(writer.define(1, 0, "scope", "").ok());
  EXPECT_EQ(writer.define(2, 0, "neither", "").code(), Code::kInvalidArgument);
}

// The builtin events are the table in event_types.cc: their class, flags and arguments.
TEST_F(WriterLimits, BuiltinEventIsNotDefinedOtherwise) {
  const Builtin& mark = builtin(Role::kMark);
  const auto define = [&](uint16_t event_class, uint32_t flags, std::string_view signature) {
    return writer.define(event_class, flags, mark.name, signature).code();
  };
  EXPECT_EQ(define(kClassScope, mark.flags, mark.signature), Code::kAlreadyExists);
  EXPECT_EQ(define(mark.event_class, mark.flags ^ kFlagInternal, mark.signature),
            Code::kAlreadyExists);
  EXPECT_EQ(define(mark.event_class, mark.flags, "ascii other"), Code::kAlreadyExists);
  EXPECT_TRUE(writer.define(mark.event_class, mark.flags, mark.name, mark.signature).ok());
}

// Not before the last event of their zone.
TEST(WriterScopes, AreClosedAtTheLastEventIfLater) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  const uint32_t scope = writer.define_scope("s").value();
  for (const auto& [zone, us] : {std::pair("early", 20u), {"late", 90u}}) {
    ASSERT_TRUE(writer.set_zone(writer.create_zone(zone).value()).ok());
    ASSERT_TRUE(writer.enter(scope, us * 1000).ok());
  }
  ASSERT_TRUE(writer.close_scopes(50'000).ok());
  ASSERT_TRUE(writer.finish().ok());
  Findings findings;
  EXPECT_EQ(testing::lines_of(sink.bytes(), findings),
            (std::vector<std::string>{"early | s | 20 |", "late | s | 90 |",
                                      "early | wtf.scope#leave | 50 |",
                                      "late | wtf.scope#leave | 90 |"}));
}

TEST(WriterScopes, StayAsTheyAreInAFaithfulCopy) {
  VectorSink sink;
  Writer writer(sink, {.pair_scopes = false});
  ASSERT_TRUE(writer.begin(FileHeader{}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  ASSERT_TRUE(writer.leave(1000).ok());
  ASSERT_TRUE(writer.enter(writer.define_scope("s").value(), 2000).ok());
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(writer.stats().dropped_leaves, 0u);
  EXPECT_EQ(writer.stats().closed_scopes, 0u);
  Findings findings;
  EXPECT_EQ(testing::lines_of(sink.bytes(), findings),
            (std::vector<std::string>{"z | wtf.scope#leave | 1 |", "z | s | 2 |"}));
}

// 64 parts, and the header of 24 bytes and 12 for each: the length is a word.
TEST(ChunkEncoder, ChunkIsShorterThan4GiB) {
  constexpr uint64_t kHead = 24 + 64 * 12;
  const std::vector<uint8_t> bytes(size_t{64} << 20);
  for (const auto& [last, fits] :
       {std::pair(bytes.size() - kHead - 4, true), {bytes.size() - kHead, false}}) {
    std::vector<PartOut> parts(63, {77, bytes});
    parts.push_back({77, Bytes(bytes).first(last)});
    CountingSink sink;
    const Status status = write_chunk(sink, {1, 2}, parts);
    EXPECT_EQ(status.ok(), fits);
    EXPECT_EQ(sink.count, fits ? 0xFFFFFFFC : 0u);
    if (!fits) {
      EXPECT_EQ(status.code(), Code::kLimit);
    }
  }
}

}  // namespace
}  // namespace collect::wtf
