// Lines as flamegraph.pl and others read them: frames by `;`, the weight behind the last blank.
#include "formats/folded/writer.h"

#include <gtest/gtest.h>

#include <string>

namespace collect::folded {
namespace {

std::string text_of(const VectorSink& sink) {
  return {sink.bytes().begin(), sink.bytes().end()};
}

TEST(FoldedWriter, WritesTheExampleOfTheDocument) {
  VectorSink sink;
  Writer writer(sink);
  writer.push("app");
  writer.push("main");
  writer.push("main");
  writer.push("parse(char*)");
  writer.push("skip_blanks");
  writer.weigh(1250);
  writer.pop();
  writer.weigh(4000);
  writer.pop();
  writer.weigh(0);  // no line
  writer.pop();
  writer.push("[stalled]");
  writer.weigh(300);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(text_of(sink),
            "app;main;main;parse(char*);skip_blanks 1250\n"
            "app;main;main;parse(char*) 4000\n"
            "app;main;[stalled] 300\n");
}

TEST(FoldedWriter, NamesCannotEndAFrameOrALine) {
  VectorSink sink;
  Writer writer(sink);
  writer.push("a;b\nc\x7f\x1f d");
  writer.push("");
  writer.push("\xff");
  writer.push(std::string(kMaxNameBytes + 1, 'x'));
  writer.weigh(1);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(text_of(sink),
            "a:b c   d;(no name);\xef\xbf\xbd;" + std::string(kMaxNameBytes, 'x') + " 1\n");
}

// What may stand in a name stays as it is.
TEST(FoldedWriter, OtherCharactersStay) {
  VectorSink sink;
  Writer writer(sink);
  writer.push("!:~ <a>\xc3\xa9\xc2\x80");
  writer.push(std::string("\x00\t\x1f", 3));
  writer.weigh(1);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(text_of(sink), "!:~ <a>\xc3\xa9\xc2\x80;    1\n");
}

TEST(FoldedWriter, NameOfTheGreatestLengthIsWhole) {
  VectorSink sink;
  Writer writer(sink);
  const std::string name = std::string(kMaxNameBytes - 1, 'x') + "y";
  writer.push(name);
  writer.push("z");
  writer.weigh(18446744073709551615u);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(text_of(sink), name + ";z 18446744073709551615\n");
}

TEST(FoldedWriter, WithoutAFrameThereIsNoLine) {
  VectorSink sink;
  Writer writer(sink);
  writer.weigh(5);
  writer.push("a");
  writer.pop();
  writer.weigh(5);
  writer.push("b");
  writer.weigh(6);
  ASSERT_TRUE(writer.finish().ok());
  EXPECT_EQ(text_of(sink), "b 6\n");
}

class FullSink final : public ByteSink {
 public:
  Status write(Bytes) override { return Error{Code::kNoSpace, "full"}; }
};

TEST(FoldedWriter, SinkThatIsFullIsSaid) {
  FullSink full;
  Writer writer(full);
  writer.push("a");
  writer.weigh(1);
  EXPECT_TRUE(writer.status().ok()) << "nothing was written yet";
  EXPECT_EQ(writer.finish().code(), Code::kNoSpace);
  EXPECT_FALSE(writer.status().ok());
}

}  // namespace
}  // namespace collect::folded
