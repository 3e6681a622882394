// The three cases of every decoder, for both forms: each prefix of a valid input, each single-byte
// flip, each declared limit plus one. Every input is in a buffer of its own length, so that the
// sanitizers see a byte read outside.
#include <gtest/gtest.h>

#include "formats/wtf/check.h"
#include "formats/wtf/json/json.h"
#include "formats/wtf/transcode.h"
#include "tests/formats/wtf/built_file.h"

namespace collect::wtf {
namespace {

// Everything that a reader offers, on these bytes; what must hold of any input is asserted here.
FileReport read_everything(const std::vector<uint8_t>& bytes) {
  const FileReport report = check_file(bytes);
  EXPECT_EQ(report.grade == Grade::kOk, report.findings.errors() == 0);
  if (report.viewer_loads) {
    EXPECT_NE(report.grade, Grade::kRejected);
  }
  Findings findings;
  if (report.kind == FileKind::kBinary) {
    EXPECT_EQ(testing::lines_of(bytes, findings).size(), report.events);
    VectorSink json, binary;
    const auto there = binary_to_json(bytes, {}, json, findings);
    EXPECT_TRUE(there.ok());
    Findings back_findings;
    EXPECT_TRUE(json_to_binary(json.bytes(), binary, back_findings).ok());
    if (report.findings.list().empty()) {
      EXPECT_EQ(binary.bytes(), bytes);
    }
  }
  if (report.kind == FileKind::kBinary || report.kind == FileKind::kLegacy) {
    auto reader = Reader::open(bytes, findings);
    EXPECT_EQ(reader.ok(), report.grade != Grade::kRejected);
    if (reader.ok()) {
      VectorSink copy;
      Writer writer(copy, kFaithfulCopy);
      EXPECT_TRUE(transcode(**reader, writer, findings).ok());
      EXPECT_EQ(check_file(copy.bytes()).events, report.events);
    }
  }
  return report;
}

TEST(DecoderCases, EveryPrefix) {
  const std::vector<uint8_t> whole = testing::build_file(300);
  uint64_t previous = 0;
  for (size_t length = 0; length < whole.size(); ++length) {
    const FileReport report =
        read_everything({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(length)});
    ASSERT_EQ(report.grade == Grade::kRejected, length < kFileHeaderBytes) << length;
    ASSERT_GE(report.events, previous) << length << ": more bytes, fewer events";
    previous = report.events;
  }
  EXPECT_EQ(read_everything(whole).grade, Grade::kOk);
  EXPECT_EQ(previous, 20u);
}

TEST(DecoderCases, EverySingleByteFlip) {
  const std::vector<uint8_t> whole = testing::build_file(300);
  constexpr uint8_t kFlips[] = {0x01, 0x80, 0xFF};
  for (size_t at = 0; at < whole.size(); ++at) {
    const uint8_t flip = kFlips[(at + at / 4) % 3];  // each of them at each place of a word
    std::vector<uint8_t> bytes = whole;
    bytes[at] = static_cast<uint8_t>(bytes[at] ^ flip);
    (void)read_everything(bytes);
    if (HasFailure()) FAIL() << "byte " << at << " xor " << int{flip};
  }
}

// A few hundred bytes, two chunks of events: each byte of its JSON is flipped and cut below.
std::vector<uint8_t> small_file() {
  VectorSink sink;
  Writer writer(sink, {.chunk_bytes = 150});
  FileHeader header;
  header.context.reset();
  EXPECT_TRUE(writer.begin(header).ok());
  EXPECT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  const uint32_t scope = writer.define_scope("s", "ascii t, any j, float32[] f").value();
  const float floats[] = {1.5f, -2};
  EXPECT_TRUE(
      writer.enter(scope, 1000, {"é", "{\"a\":[1]}", Arg::array(std::span<const float>(floats))})
          .ok());
  EXPECT_TRUE(writer.leave(2000).ok());
  EXPECT_TRUE(writer.finish().ok());
  return sink.bytes();
}

TEST(DecoderCases, EveryPrefixAndFlipOfJson) {
  const std::vector<uint8_t> binary = small_file();
  for (const JsonMode mode : {JsonMode::kComplete, JsonMode::kPartial}) {
    Findings findings;
    VectorSink json;
    ASSERT_TRUE(binary_to_json(binary, {mode, JsonEvents::kEvents}, json, findings).ok());
    const std::vector<uint8_t>& whole = json.bytes();
    size_t previous = 0;
    for (size_t length = 0; length < whole.size(); ++length) {
      const std::vector<uint8_t> prefix(whole.begin(),
                                        whole.begin() + static_cast<ptrdiff_t>(length));
      VectorSink out;
      Findings found;
      const auto converted = json_to_binary(prefix, out, found);
      const bool ends_whole = mode == JsonMode::kPartial && converted.ok() && found.errors() == 0;
      ASSERT_TRUE(found.errors() != 0 || ends_whole || length + 2 >= whole.size()) << length;
      ASSERT_GE(out.bytes().size(), previous) << length;
      // What came whole is what the whole file begins with.
      ASSERT_TRUE(std::equal(out.bytes().begin(), out.bytes().end(), binary.begin())) << length;
      previous = out.bytes().size();
    }
    for (size_t at = 0; at < whole.size(); ++at) {
      std::vector<uint8_t> bytes = whole;
      bytes[at] = static_cast<uint8_t>(bytes[at] ^ 0x01);
      VectorSink out;
      Findings found;
      (void)json_to_binary(bytes, out, found);
      if (!out.bytes().empty()) {
        EXPECT_NE(check_file(out.bytes()).grade, Grade::kRejected) << at;
      }
    }
  }
}

// Every length, count and offset of the format, one beyond what is there and as far as it goes.
TEST(DecoderCases, EveryLimitPlusOne) {
  const std::vector<uint8_t> whole = testing::build_file();
  const size_t first = kFileHeaderBytes;
  const size_t second = first + load_le<uint32_t>(&whole[first + 8]);
  for (const size_t chunk : {first, second}) {
    const uint32_t parts = load_le<uint32_t>(&whole[chunk + 20]);
    std::vector<size_t> fields = {chunk + 8, chunk + 20};
    for (uint32_t i = 0; i < parts; ++i) {
      fields.push_back(chunk + kChunkHeaderBytes + i * kPartEntryBytes + 4);
      fields.push_back(chunk + kChunkHeaderBytes + i * kPartEntryBytes + 8);
    }
    for (const size_t at : fields) {
      for (const uint32_t value :
           {load_le<uint32_t>(&whole[at]) + 1, load_le<uint32_t>(&whole[at]) + 4, UINT32_MAX}) {
        std::vector<uint8_t> bytes = whole;
        store_le(&bytes[at], value);
        const FileReport report = read_everything(bytes);
        // A length that one byte of its padding makes longer is as good as before.
        const uint32_t old = load_le<uint32_t>(&whole[at]);
        const bool in_padding = value == old + 1 && old % 4 != 0;
        EXPECT_TRUE(in_padding || !report.findings.list().empty()) << at << " " << value;
      }
    }
  }
}

TEST(DecoderCases, ArrayCountsBeyondTheBuffer) {
  VectorSink sink;
  Writer writer(sink);
  ASSERT_TRUE(writer.begin({}).ok());
  ASSERT_TRUE(writer.set_zone(writer.create_zone("z").value()).ok());
  const uint32_t type = writer.define_instance("t", "uint32[] a").value();
  const uint32_t words[] = {1, 2, 3};
  ASSERT_TRUE(writer.event(type, 0, {Arg::array(std::span<const uint32_t>(words))}).ok());
  ASSERT_TRUE(writer.finish().ok());
  const size_t count = sink.bytes().size() - 16;
  ASSERT_EQ(load_le<uint32_t>(&sink.bytes()[count]), 3u);
  for (const uint32_t value : {4u, 0x40000000u, 0xFFFFFFFEu}) {
    std::vector<uint8_t> bytes = sink.bytes();
    store_le(&bytes[count], value);
    const FileReport report = read_everything(bytes);
    EXPECT_TRUE(report.findings.has(Rule::kEventCut)) << value;
    EXPECT_EQ(report.events, 1u);
  }
}

}  // namespace
}  // namespace collect::wtf
