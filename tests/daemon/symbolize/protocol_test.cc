#include "daemon/symbolize/protocol.h"

#include <gtest/gtest.h>

#include "daemon/symbolize/limits.h"
#include "formats/core/crc32.h"
#include "formats/core/text/function_pattern.h"

namespace collect::symbolize::test {
namespace {

LookupRequest request() {
  LookupRequest request;
  request.module_path = "/opt/app/libapp.so";
  request.build_id = {1, 2, 3, 4};
  request.module_bytes = 4096;
  request.roots = {"/"};
  request.directories = {"/symbols", ""};
  request.addresses = {0, 16, 16, 0xffffffff};
  request.patterns = {"parse_*"};
  request.most_names = 7;
  request.most_name_bytes = 8;
  return request;
}

std::vector<uint8_t> request_frame() {
  return frame_bytes(FrameKind::kRequest, encode_request(request()));
}

TEST(FrameReader, TakesFramesInAnyPortions) {
  std::vector<uint8_t> stream = request_frame();
  const size_t one = stream.size();
  const std::vector<uint8_t> second = frame_bytes(FrameKind::kDone, encode_done({3, 0, {1, 0}}));
  stream.insert(stream.end(), second.begin(), second.end());
  for (size_t portion = 1; portion <= stream.size(); ++portion) {
    FrameReader reader(kMaxRequestBytes);
    std::vector<FrameKind> kinds;
    for (size_t at = 0; at < stream.size(); at += portion) {
      reader.push(Bytes(stream).subspan(at, std::min(portion, stream.size() - at)));
      while (true) {
        const auto frame = reader.next();
        ASSERT_TRUE(frame.ok()) << to_string(frame.error());
        if (!*frame) break;
        kinds.push_back((*frame)->kind);
      }
    }
    EXPECT_EQ(kinds, (std::vector<FrameKind>{FrameKind::kRequest, FrameKind::kDone}));
    EXPECT_TRUE(reader.empty());
  }
  EXPECT_GT(one, 12u);
}

TEST(FrameReader, NoPrefixIsAFrame) {
  const std::vector<uint8_t> frame = request_frame();
  for (size_t bytes = 0; bytes < frame.size(); ++bytes) {
    FrameReader reader(kMaxRequestBytes);
    reader.push(Bytes(frame).first(bytes));
    const auto next = reader.next();
    ASSERT_TRUE(next.ok());
    EXPECT_FALSE(*next) << bytes;
  }
}

TEST(FrameReader, FindsEveryFlippedByte) {
  const std::vector<uint8_t> frame = request_frame();
  for (size_t at = 0; at < frame.size(); ++at) {
    std::vector<uint8_t> flipped = frame;
    flipped[at] ^= 0x20;
    FrameReader reader(kMaxRequestBytes);
    reader.push(flipped);
    const auto next = reader.next();
    // A length may become larger: then the rest is waited for. A kind may become another kind.
    if (next.ok() && *next) {
      EXPECT_LT(at, 4u) << "only the kind is not under the checksum";
      EXPECT_NE((*next)->kind, FrameKind::kRequest);
    }
  }
}

TEST(FrameReader, SaysWhetherAPartOfAFrameWaits) {
  const std::vector<uint8_t> frame = request_frame();
  FrameReader reader(kMaxRequestBytes);
  EXPECT_TRUE(reader.empty());
  reader.push(Bytes(frame).first(1));
  EXPECT_FALSE(reader.empty());
  reader.push(Bytes(frame).subspan(1));
  EXPECT_FALSE(reader.empty());
  ASSERT_TRUE(reader.next().ok());
  EXPECT_TRUE(reader.empty());
}

TEST(FrameReader, RefusesAWrongChecksum) {
  std::vector<uint8_t> frame = request_frame();
  frame.back() ^= 1;
  FrameReader reader(kMaxRequestBytes);
  reader.push(frame);
  EXPECT_EQ(reader.next().code(), Code::kDamaged);
}

TEST(FrameReader, RefusesKindsThatAreNone) {
  for (const uint32_t kind : {0u, uint32_t(FrameKind::kDone) + 1, 0xffffffffu}) {
    FrameReader reader(kMaxRequestBytes);
    reader.push(frame_bytes(static_cast<FrameKind>(kind), {}));
    const auto next = reader.next();
    ASSERT_FALSE(next.ok()) << kind;
    EXPECT_EQ(next.code(), Code::kDamaged) << kind;
  }
}

TEST(FrameReader, RefusesOneByteMoreThanItsLimit) {
  const std::vector<uint8_t> body(100);
  const std::vector<uint8_t> frame = frame_bytes(FrameKind::kNames, body);
  FrameReader enough(100);
  enough.push(frame);
  EXPECT_TRUE(enough.next().ok());
  FrameReader less(99);
  less.push(Bytes(frame).first(12));
  const auto refused = less.next();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kLimit);
}

TEST(LookupRequestTest, ComesBackAsItWas) {
  const LookupRequest sent = request();
  const auto got = decode_request(encode_request(sent));
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->module_path, sent.module_path);
  EXPECT_EQ(got->build_id, sent.build_id);
  EXPECT_EQ(got->module_bytes, sent.module_bytes);
  EXPECT_EQ(got->roots, sent.roots);
  EXPECT_EQ(got->directories, sent.directories);
  EXPECT_EQ(got->addresses, sent.addresses);
  EXPECT_EQ(got->patterns, sent.patterns);
  EXPECT_EQ(got->most_names, sent.most_names);
  EXPECT_EQ(got->most_name_bytes, sent.most_name_bytes);
}

TEST(LookupRequestTest, NoPrefixAndNoMoreIsTaken) {
  std::vector<uint8_t> body = encode_request(request());
  for (size_t bytes = 0; bytes < body.size(); ++bytes) {
    EXPECT_FALSE(decode_request(Bytes(body).first(bytes)).ok()) << bytes;
  }
  body.push_back(0);
  EXPECT_FALSE(decode_request(body).ok());
}

TEST(LookupRequestTest, EveryFlippedByteIsTakenOrRefused) {
  const std::vector<uint8_t> body = encode_request(request());
  for (size_t at = 0; at < body.size(); ++at) {
    std::vector<uint8_t> flipped = body;
    flipped[at] ^= 0xff;
    const auto got = decode_request(flipped);
    if (got.ok()) {
      EXPECT_EQ(encode_request(*got), flipped) << at;
    }
  }
}

TEST(LookupRequestTest, LimitsPlusOneAreRefused) {
  LookupRequest sent = request();
  sent.module_path = std::string(kMaxPathBytes, 'x');
  EXPECT_TRUE(decode_request(encode_request(sent)).ok());
  sent.module_path += 'x';
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  sent = request();
  sent.build_id.assign(kMaxPathBytes, 7);
  EXPECT_TRUE(decode_request(encode_request(sent)).ok());
  sent.build_id.push_back(7);
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  sent = request();
  sent.patterns.assign(kMaxFunctionPatterns, "f");
  EXPECT_TRUE(decode_request(encode_request(sent)).ok());
  sent.patterns.emplace_back("f");
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  sent = request();
  sent.directories.assign(kMaxCandidates, "d");
  EXPECT_TRUE(decode_request(encode_request(sent)).ok());
  sent.directories.emplace_back("d");
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  sent = request();
  sent.roots.assign(kMaxCandidates, "d");
  EXPECT_TRUE(decode_request(encode_request(sent)).ok());
  sent.roots.emplace_back("d");
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  sent = request();
  sent.addresses = {2, 1};
  EXPECT_FALSE(decode_request(encode_request(sent)).ok());
}

TEST(LookupRequestTest, EveryTextOfAListHasALimit) {
  for (const auto list :
       {&LookupRequest::roots, &LookupRequest::directories, &LookupRequest::patterns}) {
    LookupRequest sent = request();
    (sent.*list).emplace_back(kMaxPathBytes, 'x');
    EXPECT_TRUE(decode_request(encode_request(sent)).ok());
    (sent.*list).back() += 'x';
    EXPECT_FALSE(decode_request(encode_request(sent)).ok());
  }
}

TEST(AnswerFrames, ComeBackAndAreRefusedWhenCut) {
  std::vector<uint8_t> body;
  append_name(body, 7, "seven");
  append_name(body, 8, "");
  std::vector<NamedAddress> names;
  ASSERT_TRUE(decode_names(body, names).ok());
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].name, "seven");
  for (const size_t bytes : {1u, 5u, 8u, 12u}) {
    names.clear();
    EXPECT_FALSE(decode_names(Bytes(body).first(bytes), names).ok()) << bytes;
  }
  body.clear();
  append_name(body, 7, std::string(kMaxSymbolNameBytes + 1, 'x'));
  EXPECT_FALSE(decode_names(body, names).ok());
  std::vector<uint32_t> functions;
  EXPECT_FALSE(decode_functions(Bytes(body).first(7), functions).ok());

  const auto source = decode_source(encode_source({"/a", "b", "c"}));
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->path + source->problem + source->missing, "/abc");
  EXPECT_FALSE(decode_source(Bytes(encode_source({"/a", "b", "c"})).first(9)).ok());
  const auto done = decode_done(encode_done({5, 6, {1, 0}}));
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->left_out, 5u);
  EXPECT_EQ(done->lines_left_out, 6u);
  EXPECT_EQ(done->matched, (std::vector<uint8_t>{1, 0}));
  EXPECT_FALSE(
      decode_done(encode_done({5, 0, std::vector<uint8_t>(kMaxFunctionPatterns + 1)})).ok());
}

TEST(AnswerFrames, TakesWholeEntriesOfACutFrame) {
  std::vector<uint8_t> body;
  append_name(body, 7, "seven");
  append_name(body, 8, "eight");
  for (size_t bytes = 0; bytes <= body.size(); ++bytes) {
    std::vector<NamedAddress> names;
    const bool is_whole = bytes % (4 + 2 + 5) == 0;
    EXPECT_EQ(decode_names(Bytes(body).first(bytes), names).ok(), is_whole) << bytes;
    EXPECT_EQ(names.size(), bytes / (4 + 2 + 5)) << bytes;
  }
  body.clear();
  for (const uint32_t address : {7u, 8u}) append_function(body, address);
  for (size_t bytes = 0; bytes <= body.size(); ++bytes) {
    std::vector<uint32_t> functions;
    EXPECT_EQ(decode_functions(Bytes(body).first(bytes), functions).ok(), bytes % 4 == 0) << bytes;
    EXPECT_EQ(functions.size(), bytes / 4) << bytes;
  }
}

TEST(AnswerFrames, LinesComeBackAndAreRefusedWhenCut) {
  std::vector<uint8_t> body;
  append_line(body, 7, "a.c", 12);
  append_line(body, 8, "b.c", UINT32_MAX);
  constexpr size_t kBytes = 4 + 4 + 2 + 3;
  for (size_t bytes = 0; bytes <= body.size(); ++bytes) {
    std::vector<LineOfAddress> lines;
    EXPECT_EQ(decode_lines(Bytes(body).first(bytes), lines).ok(), bytes % kBytes == 0) << bytes;
    ASSERT_EQ(lines.size(), bytes / kBytes) << bytes;
    if (lines.size() != 2) continue;
    EXPECT_EQ(lines[0].address, 7u);
    EXPECT_EQ(lines[0].file, "a.c");
    EXPECT_EQ(lines[0].line, 12u);
    EXPECT_EQ(lines[1].line, UINT32_MAX);
  }
  std::vector<LineOfAddress> lines;
  body.clear();
  append_line(body, 7, std::string(kMaxPathBytes, 'x'), 1);
  EXPECT_TRUE(decode_lines(body, lines).ok());
  body.clear();
  append_line(body, 7, std::string(kMaxPathBytes + 1, 'x'), 1);
  EXPECT_FALSE(decode_lines(body, lines).ok());
}

TEST(AnswerFrames, AsMuchAsTheirLimitsIsTaken) {
  std::vector<uint8_t> body;
  append_name(body, 7, std::string(kMaxSymbolNameBytes, 'x'));
  std::vector<NamedAddress> names;
  EXPECT_TRUE(decode_names(body, names).ok());
  EXPECT_EQ(names.at(0).name.size(), kMaxSymbolNameBytes);
  const auto done = decode_done(encode_done({5, 0, std::vector<uint8_t>(kMaxFunctionPatterns, 1)}));
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->matched.size(), kMaxFunctionPatterns);
}

TEST(AnswerFrames, RejectTrailingBytes) {
  std::vector<uint8_t> source = encode_source({"/a", "b", "c"});
  source.push_back(0);
  EXPECT_FALSE(decode_source(source).ok());
  std::vector<uint8_t> done = encode_done({5, 0, {1, 0}});
  done.push_back(0);
  EXPECT_FALSE(decode_done(done).ok());
}

// A sentence may name a path and be longer than one.
TEST(Protocol, SourcesAreCutAtWhatTheOtherSideTakes) {
  const std::string longest(kMaxPathBytes, 'x');
  const std::vector<uint8_t> body = encode_source({longest + "y", longest, ""});
  const auto source = decode_source(body);
  ASSERT_TRUE(source.ok());
  EXPECT_EQ(source->path, longest);
  EXPECT_EQ(source->problem, longest);
  for (size_t at = 0; at < 3; ++at) {  // each of its texts, one byte too long
    std::vector<uint8_t> longer;
    for (size_t i = 0; i < 3; ++i) {
      const size_t bytes = i == at ? kMaxPathBytes + 1 : 0;
      longer.resize(longer.size() + 4);
      store_le(longer.data() + longer.size() - 4, static_cast<uint32_t>(bytes));
      longer.resize(longer.size() + bytes, 'x');
    }
    EXPECT_FALSE(decode_source(longer).ok()) << at;
  }
}

}  // namespace
}  // namespace collect::symbolize::test
