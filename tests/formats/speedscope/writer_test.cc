// The file of FORMAT.md, byte for byte, and the rules of speedscope's schema: opens and closes
// balance, times never step back.
#include "formats/speedscope/writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace collect::speedscope {
namespace {

using nlohmann::json;

std::string text_of(const VectorSink& sink) {
  return {sink.bytes().begin(), sink.bytes().end()};
}

TEST(SpeedscopeWriter, WritesTheExampleOfTheDocument) {
  VectorSink sink;
  Writer writer(sink, 1000, "collectctl");
  writer.begin_profile("app: main (4711)");
  writer.open(1000, writer.frame_of(9, [] { return std::string_view("parse(char*)"); }));
  writer.close(1250);
  writer.end_profile(1250);
  ASSERT_TRUE(writer.finish("app").ok());
  EXPECT_EQ(text_of(sink), R"text({"$schema":"https://www.speedscope.app/file-format-schema.json",
"profiles":[
{"type":"evented","name":"app: main (4711)","unit":"nanoseconds","events":[
{"type":"O","frame":0,"at":0},
{"type":"C","frame":0,"at":250}],"startValue":0,"endValue":250}],
"shared":{"frames":[
{"name":"parse(char*)"}]},
"name":"app","exporter":"collectctl"}
)text");
}

TEST(SpeedscopeWriter, FramesHaveTheirSources) {
  VectorSink sink;
  Writer writer(sink, 0, "x");
  writer.begin_profile("a");
  writer.open(1, writer.frame_of(0, [] { return Frame{"f", "a\"b.c", 12}; }));
  writer.end_profile(2);
  ASSERT_TRUE(writer.finish("x").ok());
  EXPECT_EQ(json::parse(text_of(sink))["shared"]["frames"],
            json::parse(R"([{"name":"f","file":"a\"b.c","line":12}])"));
}

TEST(SpeedscopeWriter, OpensAndClosesBalance) {
  VectorSink sink;
  Writer writer(sink, 0, "x");
  const uint32_t f = writer.frame_named("f");
  const uint32_t g = writer.frame_of(0, [] { return std::string_view("g"); });
  EXPECT_EQ(writer.frame_named("f"), f);
  EXPECT_EQ(writer.frame_of(0, [] { return std::string_view("not asked"); }), g);
  writer.begin_profile("a");
  writer.close(5);  // nothing is open
  writer.open(10, f);
  writer.open(8, g);  // steps back
  EXPECT_EQ(writer.depth(), 2u);
  writer.end_profile(20);
  writer.begin_profile("b");
  writer.open(7, g);
  writer.end_profile(7);
  EXPECT_EQ(writer.moved_times(), 1u);
  ASSERT_TRUE(writer.finish("x").ok());
  const json file = json::parse(text_of(sink));
  EXPECT_EQ(file["profiles"][0]["events"], json::parse(R"([{"type":"O","frame":0,"at":10},
    {"type":"O","frame":1,"at":10},{"type":"C","frame":1,"at":20},{"type":"C","frame":0,"at":20}])"));
  EXPECT_EQ(file["profiles"][0]["startValue"], 10);
  EXPECT_EQ(file["profiles"][0]["endValue"], 20);
  EXPECT_EQ(file["profiles"][1]["startValue"], 7) << "each profile has its own times";
  EXPECT_EQ(file["shared"]["frames"], json::parse(R"([{"name":"f"},{"name":"g"}])"));
}

TEST(SpeedscopeWriter, FunctionsMayBeNumberedAgain) {
  VectorSink sink;
  Writer writer(sink, 0, "x");
  const uint32_t f = writer.frame_of(0, [] { return std::string_view("f"); });
  writer.forget_functions();
  EXPECT_NE(writer.frame_of(0, [] { return std::string_view("g"); }), f);
}

TEST(SpeedscopeWriter, ProfileWithoutAnEventHasNoTimes) {
  VectorSink sink;
  Writer writer(sink, 0, "x");
  writer.begin_profile("a");
  writer.open(9, writer.frame_named("f"));
  writer.end_profile(9);
  writer.begin_profile("b");
  writer.end_profile(9);
  writer.begin_profile("c");
  writer.open(3, writer.frame_named("f"));
  writer.end_profile(4);
  EXPECT_EQ(writer.moved_times(), 0u);
  ASSERT_TRUE(writer.finish("x").ok());
  const json file = json::parse(text_of(sink));
  EXPECT_EQ(file["profiles"][1]["startValue"], 0);
  EXPECT_EQ(file["profiles"][1]["endValue"], 0);
  EXPECT_EQ(file["profiles"][2]["startValue"], 3);
  EXPECT_EQ(file["profiles"][2]["endValue"], 4);
}

}  // namespace
}  // namespace collect::speedscope
