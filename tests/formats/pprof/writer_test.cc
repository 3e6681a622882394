// A small profile, byte for byte from profile.proto; whole ones go through protoc and pprof in
// tests/daemon/ctl/export.
#include "formats/pprof/writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <string>
#include <vector>

namespace collect::pprof {
namespace {

using Raw = std::vector<uint8_t>;

Raw unpacked(const Raw& file) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 31), Z_OK);
  Raw out(1 << 20);
  stream.next_in = const_cast<uint8_t*>(file.data());
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = out.data();
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

void put(Raw& to, const std::string& text) {
  to.push_back(0x32);  // string_table
  to.push_back(static_cast<uint8_t>(text.size()));
  to.insert(to.end(), text.begin(), text.end());
}
void put(Raw& to, std::initializer_list<int> bytes) {
  for (const int byte : bytes) to.push_back(static_cast<uint8_t>(byte));
}

TEST(PprofWriter, WritesProfileProto) {
  VectorSink sink;
  Writer writer(sink);
  const uint64_t mapping = writer.add_mapping({0x10, 0x20, "app", "ab"});
  EXPECT_EQ(mapping, 1u);
  const uint64_t f = writer.add_location("f", mapping, 0x12);
  const uint64_t g = writer.add_location("g");
  writer.set_labels({{"thread", "t"}, {"device", ""}});
  writer.push(f);
  writer.push(g);
  writer.sample(3, 200);
  writer.pop();
  writer.sample(0, 0);  // no sample
  EXPECT_EQ(writer.depth(), 1u);
  ASSERT_TRUE(writer.finish(5, 6, {"c"}).ok());

  Raw wanted;
  for (const char* text : {"", "calls", "count", "time", "nanoseconds"}) put(wanted, text);
  put(wanted, {0x0a, 4, 0x08, 1, 0x10, 2});  // sample_type
  put(wanted, {0x0a, 4, 0x08, 3, 0x10, 4});
  put(wanted, {0x70, 3});  // default_sample_type
  put(wanted, "app");
  put(wanted, "ab");
  put(wanted, {0x1a, 12, 0x08, 1, 0x10, 0x10, 0x18, 0x20, 0x28, 5, 0x30, 6, 0x38, 1});  // mapping
  put(wanted, "f");
  put(wanted, {0x2a, 6, 0x08, 1, 0x10, 7, 0x18, 7});                        // function
  put(wanted, {0x22, 10, 0x08, 1, 0x10, 1, 0x18, 0x12, 0x22, 2, 0x08, 1});  // location
  put(wanted, "g");
  put(wanted, {0x2a, 6, 0x08, 2, 0x10, 8, 0x18, 8});
  put(wanted, {0x22, 6, 0x08, 2, 0x22, 2, 0x08, 2});
  put(wanted, "thread");
  put(wanted, "t");
  put(wanted, {0x12, 15, 0x0a, 2, 2, 1,       // sample: leaf first
               0x12, 3, 3, 0xc8, 1,           // values
               0x1a, 4, 0x08, 9, 0x10, 10});  // label
  put(wanted, {0x48, 5, 0x50, 6});            // time, duration
  put(wanted, "c");
  put(wanted, {0x68, 11});  // comment
  EXPECT_EQ(unpacked(sink.bytes()), wanted);
}

TEST(PprofWriter, FunctionsHaveTheirSources) {
  VectorSink sink;
  Writer writer(sink);
  EXPECT_EQ(writer.add_location("f", 0, 0, "a.c", 12), 1u);
  EXPECT_EQ(writer.add_location("g", 0, 0, "a.c", 13), 2u);
  ASSERT_TRUE(writer.finish(0, 6, {}).ok());

  Raw wanted;
  for (const char* text : {"", "calls", "count", "time", "nanoseconds"}) put(wanted, text);
  put(wanted, {0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3, 0x10, 4, 0x70, 3});
  put(wanted, "f");
  put(wanted, "a.c");  // once
  put(wanted, {0x2a, 10, 0x08, 1, 0x10, 5, 0x18, 5, 0x20, 6, 0x28, 12});
  put(wanted, {0x22, 8, 0x08, 1, 0x22, 4, 0x08, 1, 0x10, 12});
  put(wanted, "g");
  put(wanted, {0x2a, 10, 0x08, 2, 0x10, 7, 0x18, 7, 0x20, 6, 0x28, 13});
  put(wanted, {0x22, 8, 0x08, 2, 0x22, 4, 0x08, 2, 0x10, 13});
  put(wanted, {0x50, 6});
  EXPECT_EQ(unpacked(sink.bytes()), wanted);
}

TEST(PprofWriter, SamplesAreWrittenAsTheyCome) {
  VectorSink sink;
  Writer writer(sink);
  writer.push(writer.add_location("f"));
  // Of values that do not compress.
  for (uint64_t i = 1; i <= 100'000; ++i) writer.sample(1, i * 0x9E3779B97F4A7C15ull);
  const size_t before = sink.bytes().size();
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  EXPECT_GT(before, sink.bytes().size() / 2);
}

TEST(PprofWriter, LocationsAreWrittenAsTheyCome) {
  VectorSink sink;
  Writer writer(sink);
  for (uint64_t i = 1; i <= 40'000; ++i) {
    writer.add_location(std::to_string(i * 0x9E3779B97F4A7C15ull));
  }
  const size_t before = sink.bytes().size();
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  EXPECT_GT(before, sink.bytes().size() / 2);
}

TEST(PprofWriter, LeavesOutUnknownFields) {
  VectorSink sink;
  Writer writer(sink);
  writer.add_mapping({0x10, 0x20, "app", ""});
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  Raw wanted;
  put(wanted, {0x70, 3});
  put(wanted, "app");
  put(wanted, {0x1a, 10, 0x08, 1, 0x10, 0x10, 0x18, 0x20, 0x28, 5, 0x38, 1});  // no build id
  put(wanted, {0x50, 0});                                                      // no time
  const Raw file = unpacked(sink.bytes());
  ASSERT_GE(file.size(), wanted.size());
  EXPECT_EQ(Raw(file.end() - static_cast<ptrdiff_t>(wanted.size()), file.end()), wanted);
}

// Everything behind what each profile begins with.
Raw behind_head(const VectorSink& sink) {
  const Raw file = unpacked(sink.bytes());
  Raw head;
  for (const char* text : {"", "calls", "count", "time", "nanoseconds"}) put(head, text);
  put(head, {0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3, 0x10, 4, 0x70, 3});
  EXPECT_GE(file.size(), head.size());
  EXPECT_TRUE(std::equal(head.begin(), head.end(), file.begin()));
  return Raw(file.begin() + static_cast<ptrdiff_t>(head.size()), file.end());
}

TEST(PprofWriter, LabelsAreThoseOfTheThreadThatCameLast) {
  VectorSink sink;
  Writer writer(sink);
  writer.set_labels({{"thread", "t"}, {"process", "p"}});
  writer.push(1);
  writer.sample(1, 2);
  writer.set_labels({{"thread", "u"}, {"device", ""}, {"process", "p"}});
  writer.sample(3, 4);
  writer.set_labels({});
  writer.sample(5, 6);
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  Raw wanted;
  for (const char* text : {"thread", "t", "process", "p"}) put(wanted, text);
  put(wanted, {0x12, 19, 0x0a, 1, 1,    0x12, 2,    1, 2,  //
               0x1a, 4,  0x08, 5, 0x10, 6,    0x1a, 4, 0x08, 7, 0x10, 8});
  put(wanted, "u");                                        // the others are known
  put(wanted, {0x12, 19, 0x0a, 1, 1,    0x12, 2,    3, 4,  //
               0x1a, 4,  0x08, 5, 0x10, 9,    0x1a, 4, 0x08, 7, 0x10, 8});
  put(wanted, {0x12, 7, 0x0a, 1, 1, 0x12, 2, 5, 6});
  put(wanted, {0x50, 0});
  EXPECT_EQ(behind_head(sink), wanted);
}

TEST(PprofWriter, SampleHasCallsOrTime) {
  VectorSink sink;
  Writer writer(sink);
  writer.push(1);
  writer.sample(0, 7);
  writer.sample(0, 0);
  writer.push(2);
  writer.push(3);
  writer.sample(8, 0);
  writer.pop();
  writer.sample(9, 9);
  EXPECT_EQ(writer.depth(), 2u);
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  Raw wanted;
  put(wanted, {0x12, 7, 0x0a, 1, 1, 0x12, 2, 0, 7});
  put(wanted, {0x12, 9, 0x0a, 3, 3, 2, 1, 0x12, 2, 8, 0});
  put(wanted, {0x12, 8, 0x0a, 2, 2, 1, 0x12, 2, 9, 9});
  put(wanted, {0x50, 0});
  EXPECT_EQ(behind_head(sink), wanted);
}

TEST(PprofWriter, LocationsAndMappingsAreNumberedFromOne) {
  VectorSink sink;
  Writer writer(sink);
  EXPECT_EQ(writer.add_mapping({1, 2, "a", ""}), 1u);
  EXPECT_EQ(writer.add_mapping({3, 4, "b", "cd"}), 2u);
  EXPECT_EQ(writer.add_location("f", 2, 0), 1u);
  EXPECT_EQ(writer.add_location("g", 0, 1), 2u);
  EXPECT_EQ(writer.add_location("h", 1, 1), 3u);
  ASSERT_TRUE(writer.finish(1, 2, {"x", "y"}).ok());
  Raw wanted;
  put(wanted, "a");
  put(wanted, {0x1a, 10, 0x08, 1, 0x10, 1, 0x18, 2, 0x28, 5, 0x38, 1});
  put(wanted, "b");
  put(wanted, "cd");
  put(wanted, {0x1a, 12, 0x08, 2, 0x10, 3, 0x18, 4, 0x28, 6, 0x30, 7, 0x38, 1});
  put(wanted, "f");
  put(wanted, {0x2a, 6, 0x08, 1, 0x10, 8, 0x18, 8, 0x22, 8, 0x08, 1, 0x10, 2, 0x22, 2, 0x08, 1});
  put(wanted, "g");
  put(wanted, {0x2a, 6, 0x08, 2, 0x10, 9, 0x18, 9, 0x22, 8, 0x08, 2, 0x18, 1, 0x22, 2, 0x08, 2});
  put(wanted, "h");
  put(wanted, {0x2a, 6, 0x08, 3, 0x10, 10, 0x18, 10});
  put(wanted, {0x22, 10, 0x08, 3, 0x10, 1, 0x18, 1, 0x22, 2, 0x08, 3});
  put(wanted, {0x48, 1, 0x50, 2});
  put(wanted, "x");
  put(wanted, {0x68, 11});
  put(wanted, "y");
  put(wanted, {0x68, 12});
  EXPECT_EQ(behind_head(sink), wanted);
}

TEST(PprofWriter, TextIsCutAndMadeUtf8) {
  VectorSink sink;
  Writer writer(sink);
  writer.add_mapping({1, 2, "\xff", "\xfe"});
  writer.add_mapping({1, 2, std::string(kMaxTextBytes, 'x') + "y", ""});
  ASSERT_TRUE(writer.finish(0, 0, {}).ok());
  Raw wanted;
  for (int i = 0; i < 2; ++i) put(wanted, "\xef\xbf\xbd");
  put(wanted, {0x1a, 12, 0x08, 1, 0x10, 1, 0x18, 2, 0x28, 5, 0x30, 6, 0x38, 1});
  put(wanted, {0x32, 0x80, 0x80, 0x01});  // 16 KiB
  wanted.insert(wanted.end(), kMaxTextBytes, 'x');
  put(wanted, {0x1a, 10, 0x08, 2, 0x10, 1, 0x18, 2, 0x28, 7, 0x38, 1, 0x50, 0});
  EXPECT_EQ(behind_head(sink), wanted);
}

// Fails at once, and counts how often it was asked.
class FullSink final : public ByteSink {
 public:
  Status write(Bytes) override {
    ++writes;
    return Error{Code::kNoSpace, "full"};
  }
  int writes = 0;
};

TEST(PprofWriter, AfterAnErrorNothingIsWritten) {
  FullSink full;
  Writer writer(full);
  EXPECT_TRUE(writer.status().ok()) << "nothing was written yet";
  writer.push(1);
  for (uint64_t i = 1; i <= 300'000; ++i) writer.sample(i, i * 0x9E3779B97F4A7C15ull);
  EXPECT_EQ(writer.status().code(), Code::kNoSpace);
  const int writes = full.writes;
  EXPECT_EQ(writes, 1);
  writer.add_location("f");
  EXPECT_EQ(writer.finish(0, 0, {}).code(), Code::kNoSpace);
  EXPECT_EQ(full.writes, writes);
}

TEST(PprofWriter, ErrorOfTheEndIsSaid) {
  FullSink full;
  Writer writer(full);
  EXPECT_EQ(writer.finish(0, 0, {}).code(), Code::kNoSpace);
  EXPECT_FALSE(writer.status().ok());
}

}  // namespace
}  // namespace collect::pprof
