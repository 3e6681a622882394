// Lines as flamegraph.pl and others read them: frames by `;`, the weight behind the last blank.
#include "formats/folded/writer.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace collect::folded
