#include "agent/text.h"

#include <gtest/gtest.h>

#include <string>

namespace collect::agent {
namespace {

std::string copied(const std::string& source, size_t room = 64) {
  std::string out(room, 'x');
  const size_t length = copy_utf8(out.data(), room, source.data(), source.size());
  EXPECT_EQ(out[length], '\0');
  return out.substr(0, length);
}

TEST(Text, JoinsAndCuts) {
  char out[10];
  Text text(out, sizeof out);
  text.add("n=").number(0).add(" ").number(UINT64_MAX);
  EXPECT_STREQ(out, "n=0 18446");
  EXPECT_EQ(text.size(), 9u);
}

TEST(Text, KeepsValidUtf8) {
  const std::string all = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80";
  EXPECT_EQ(copied(all), all);
}

// Table 3-7 of the Unicode standard: what is not in it is not UTF-8.
TEST(Text, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(copied("\xff\xfe"), "??");
  EXPECT_EQ(copied("\x80"), "?");
  EXPECT_EQ(copied("\xc0\xaf"), "??");            // overlong
  EXPECT_EQ(copied("\xe0\x80\xaf"), "???");       // overlong
  EXPECT_EQ(copied("\xed\xa0\x80"), "???");       // a surrogate
  EXPECT_EQ(copied("\xf4\x90\x80\x80"), "????");  // beyond the last character
  EXPECT_EQ(copied("\xe2\x82"), "??");            // cut
  EXPECT_EQ(copied("a\xe2\x82z"), "a??z");
}

// A collector's words, which COLLECT_LOG puts on the terminal of the traced program.
TEST(Text, ReplacesWhatIsNotPrintable) {
  const auto printable = [](const std::string& source) {
    std::string out(64, 'x');
    out.resize(copy_printable(out.data(), out.size(), source.data(), source.size()));
    return out;
  };
  EXPECT_EQ(printable("collectord 1.0 größer 📱"), "collectord 1.0 größer 📱");
  EXPECT_EQ(printable("a\x1b[2J\n\x7f\u009b\u202e\u200b\u2028\xff"), "a?[2J???????");
}

TEST(Text, CutsBetweenCharacters) {
  EXPECT_EQ(copied("ab\xe2\x82\xac", 5), "ab");
  EXPECT_EQ(copied("ab\xe2\x82\xac", 6), "ab\xe2\x82\xac");
  EXPECT_EQ(copied("", 1), "");
  EXPECT_EQ(copied(std::string("ab\0cd", 5)), "ab");
}

}  // namespace
}  // namespace collect::agent
