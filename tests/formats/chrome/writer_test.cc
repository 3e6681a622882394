// The lines of FORMAT.md, byte for byte, and what a JSON parser of others makes of odd names.
#include "formats/chrome/writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace collect::chrome {
namespace {

using nlohmann::json;

std::string text_of(const VectorSink& sink) {
  return {sink.bytes().begin(), sink.bytes().end()};
}

TEST(ChromeWriter, WritesTheExampleOfTheDocument) {
  VectorSink sink;
  Writer writer(sink, 1000);
  const auto name = [] { return std::string_view("parse(char*)"); };
  const EventNotes notes = {{"x0", EventNote::Kind::kAddress, 0x7ffd10, {}}};
  writer.add_process(42, "app");
  writer.begin_thread(42, 4711, "main");
  writer.begin_call(1000, 0, name, &notes);
  writer.end_call(2250, 0, name);
  ASSERT_TRUE(writer.finish({{"origin_ns", EventNote::Kind::kText, 0, "1000"}}).ok());
  EXPECT_EQ(text_of(sink), R"text({"traceEvents":[
{"ph":"M","pid":42,"name":"process_name","args":{"name":"app"}},
{"ph":"M","pid":42,"tid":4711,"name":"thread_name","args":{"name":"main"}},
{"ph":"B","pid":42,"tid":4711,"ts":0.000,"name":"parse(char*)","args":{"x0":"0x7ffd10"}},
{"ph":"E","pid":42,"tid":4711,"ts":1.250,"name":"parse(char*)"}
],"displayTimeUnit":"ns","otherData":{"origin_ns":"1000"}}
)text");
}

TEST(ChromeWriter, IntervalsMarksAndCounts) {
  VectorSink sink;
  Writer writer(sink, 0);
  writer.interval(1, 2, "lost", 3, 10, 20, "gone", {{"events", EventNote::Kind::kNumber, 7, {}}});
  writer.instant(1, 999'999'999'999, "here");
  writer.count(1, 5, "rate", 1'000'000'000'000);
  ASSERT_TRUE(writer.finish({}).ok());
  const json events = json::parse(text_of(sink))["traceEvents"];
  EXPECT_EQ(events[0], json::parse(R"({"ph":"b","pid":1,"tid":2,"ts":0.01,"cat":"lost","id":3,
                                       "name":"gone","args":{"events":7}})"));
  EXPECT_EQ(events[1], json::parse(R"({"ph":"e","pid":1,"tid":2,"ts":0.02,"cat":"lost","id":3,
                                       "name":"gone"})"));
  EXPECT_EQ(events[2], json::parse(R"({"ph":"i","pid":1,"tid":0,"ts":999999999.999,"s":"p",
                                       "name":"here"})"));
  EXPECT_EQ(events[3], json::parse(R"({"ph":"C","pid":1,"ts":0.005,"name":"rate",
                                       "args":{"value":1000000000000}})"));
}

TEST(ChromeWriter, FunctionsMayBeNumberedAgain) {
  VectorSink sink;
  Writer writer(sink, 0);
  writer.begin_thread(1, 1, "t");
  writer.begin_call(0, 0, [] { return std::string_view("f"); });
  writer.forget_functions();
  writer.begin_call(0, 0, [] { return std::string_view("g"); });
  EXPECT_EQ(writer.moved_times(), 0u) << "the same time is no step back";
  ASSERT_TRUE(writer.finish({}).ok());
  EXPECT_EQ(json::parse(text_of(sink))["traceEvents"][2]["name"], "g");
}

TEST(ChromeWriter, AnythingIsAName) {
  const std::string name = std::string("q\"b\\n\n\x01\xff\xc3\xa9") + "</script>";
  VectorSink sink;
  Writer writer(sink, 0);
  writer.begin_thread(1, 1, name);
  writer.begin_call(0, 0, [&] { return std::string_view(name); });
  ASSERT_TRUE(writer.finish({}).ok());
  const json events = json::parse(text_of(sink))["traceEvents"];
  EXPECT_EQ(events[1]["name"], "q\"b\\n\n\x01\xef\xbf\xbd\xc3\xa9</script>");
}

TEST(ChromeWriter, TimesThatStepBackAreTheOneBefore) {
  VectorSink sink;
  Writer writer(sink, 100);
  const auto name = [] { return std::string_view("f"); };
  writer.begin_thread(1, 1, "t");
  writer.begin_call(200, 0, name);
  writer.end_call(150, 0, name);
  writer.begin_thread(1, 2, "u");
  writer.begin_call(50, 0, name);  // before the origin
  EXPECT_EQ(writer.moved_times(), 1u);
  ASSERT_TRUE(writer.finish({}).ok());
  const json events = json::parse(text_of(sink))["traceEvents"];
  EXPECT_EQ(events[2]["ts"], 0.1);
  EXPECT_EQ(events[4]["ts"], 0.0);
}

}  // namespace
}  // namespace collect::chrome
