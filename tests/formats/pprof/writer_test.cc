// A small profile, byte for byte from profile.proto; whole ones go through protoc and pprof in
// tests/daemon/ctl/export.
#include "formats/pprof/writer.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

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

TEST(PprofWriter, WhatIsNotKnownIsLeftOut) {
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

TEST(PprofWriter, LabelsAreThoseThatWereSetLast) {
  VectorSink one_sink, two_sink;
  Writer one(one_sink), two(two_sink);
  for (Writer* writer : {&one, &two}) {
    const uint64_t f = writer->add_location("f");
    if (writer == &two) writer->set_labels({{"a", "b"}});
    writer->set_labels({{"thread", "t"}});
    writer->push(f);
    writer->sample(1, 1);
    ASSERT_TRUE(writer->finish(5, 6, {}).ok());
  }
  const auto labels = [](const Raw& profile) {
    size_t count = 0;  // sample 0x12, label 0x1a
    for (size_t i = 0; i + 1 < profile.size(); ++i) {
      if (profile[i] == 0x1a && profile[i + 1] == 4) ++count;
    }
    return count;
  };
  EXPECT_EQ(labels(unpacked(one_sink.bytes())), 1u);
  EXPECT_EQ(labels(unpacked(two_sink.bytes())), 1u);
}

}  // namespace
}  // namespace collect::pprof
