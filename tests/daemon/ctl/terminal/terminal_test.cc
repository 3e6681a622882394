#include "daemon/ctl/terminal/terminal.h"

#include <gtest/gtest.h>

#include <sstream>

namespace collect::ctl {
namespace {

TEST(PrintableStream, EscapesWhatACommandForgot) {
  std::ostringstream out;
  {
    PrintableStream net(out);
    out << "name\t\x1b]0;title\x07\r\n" << 'x' << '\x9b' << 42 << "\n";
  }
  EXPECT_EQ(out.str(), "name\t\\x1b]0;title\\x07\\r\nx\\x9b42\n");
  out << "\x1b";
  EXPECT_EQ(out.str().back(), '\x1b') << "the stream is as it was";
}

TEST(PrintableStream, OwnColoursGoThrough) {
  std::ostringstream out;
  {
    PrintableStream net(out);
    put_control(out, "\x1b[32m");
    out << "ok\x1b[0m";
    restart_line(out);
  }
  EXPECT_EQ(out.str(), "\x1b[32mok\\x1b[0m\r\x1b[K");
  std::ostringstream plain;
  put_control(plain, "\x1b[1m");
  EXPECT_EQ(plain.str(), "\x1b[1m") << "without a net";
}

// Output comes in blocks that end anywhere, and is flushed after each.
TEST(PrintableStream, CharactersMayBeDivided) {
  const std::string text = "grün 📱 \u009b\u202e\xe2\x82 end";
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      std::ostringstream out;
      {
        PrintableStream net(out);
        out << text.substr(0, first) << std::flush << text.substr(first, second - first)
            << std::flush << text.substr(second);
      }
      ASSERT_EQ(out.str(), "grün 📱 \\u{9b}\\u{202e}\\xe2\\x82 end") << first << " " << second;
    }
  }
}

TEST(PrintableStream, EscapesAnUnfinishedCharacterAtTheEnd) {
  std::ostringstream out;
  {
    PrintableStream net(out);
    out << "\xf0\x9f\x93";
  }
  EXPECT_EQ(out.str(), "\\xf0\\x9f\\x93");
  std::ostringstream coloured;
  {
    PrintableStream net(coloured);
    coloured << "\xe2";
    put_control(coloured, "\x1b[0m");
    coloured << "\x82\xac";
  }
  EXPECT_EQ(coloured.str(), "\\xe2\x1b[0m\\x82\\xac");
}

TEST(PrintableStream, FailingReaderIsNoticed) {
  std::ostringstream out;
  {
    PrintableStream net(out);
    out << std::string(100, 'a');
    EXPECT_TRUE(out.good());
  }
  class Closed : public std::streambuf {};  // takes nothing
  Closed closed;
  std::ostream nowhere(&closed);
  PrintableStream net(nowhere);
  nowhere << "a";
  EXPECT_FALSE(nowhere.good());
}

}  // namespace
}  // namespace collect::ctl
