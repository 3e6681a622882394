#include "daemon/ctl/control/messages/text.h"
#include "daemon/ctl/terminal/terminal.h"

#include <gtest/gtest.h>

namespace collect::ctl {
namespace {

using select::parse_duration;
using std::chrono::nanoseconds;

TEST(TextTest, Numbers) {
  EXPECT_EQ(with_thousands(0), "0");
  EXPECT_EQ(with_thousands(999), "999");
  EXPECT_EQ(with_thousands(1000), "1,000");
  EXPECT_EQ(with_thousands(UINT64_MAX), "18,446,744,073,709,551,615");
  EXPECT_EQ(short_bytes(0), "0 B");
  EXPECT_EQ(short_bytes(999), "999 B");
  EXPECT_EQ(short_bytes(1500), "1.5 kB");
  EXPECT_EQ(short_bytes(395'061'000), "395 MB");
  EXPECT_EQ(short_bytes(999'999), "1.0 MB");
  EXPECT_EQ(short_rate(12'345'678), "12.3 M/s");
  EXPECT_EQ(short_rate(850), "850/s");
  EXPECT_EQ(short_duration(0.85), "850 ms");
  EXPECT_EQ(short_duration(12.34), "12.3 s");
  EXPECT_EQ(short_duration(125), "2 min 05 s");
  EXPECT_EQ(short_duration(7500), "2 h 05 min");
}

TEST(TextTest, DurationsAsPeopleTypeThem) {
  EXPECT_EQ(*parse_duration("5s"), nanoseconds(5'000'000'000));
  EXPECT_EQ(*parse_duration("5"), nanoseconds(5'000'000'000));
  EXPECT_EQ(*parse_duration("200ms"), nanoseconds(200'000'000));
  EXPECT_EQ(*parse_duration("1.5m"), nanoseconds(90'000'000'000));
  EXPECT_EQ(*parse_duration("2h"), nanoseconds(7'200'000'000'000));
  EXPECT_EQ(*parse_duration("0"), nanoseconds(0));
  EXPECT_EQ(*parse_duration("10us"), nanoseconds(10'000));
  EXPECT_EQ(*parse_duration("7ns"), nanoseconds(7));
  EXPECT_EQ(*parse_duration("3min"), nanoseconds(180'000'000'000));
  EXPECT_EQ(*parse_duration("9000000000s"), nanoseconds(9'000'000'000'000'000'000));
  for (const char* bad :
       {"", "s", "-1s", "5x", "5 s", "nan", "inf", "1e3s", "9000000001s", "99999999999h"}) {
    EXPECT_FALSE(parse_duration(bad).ok()) << bad;
  }
}

TEST(TextTest, SizesArePowersOf1024) {
  EXPECT_EQ(*parse_size("4096"), 4096u);
  EXPECT_EQ(*parse_size("512K"), 512u << 10);
  EXPECT_EQ(*parse_size("10M"), 10u << 20);
  EXPECT_EQ(*parse_size("2G"), uint64_t{2} << 30);
  EXPECT_EQ(*parse_size("1073741824G"), kMaxSize);
  for (const char* wrong : {"", "0", "0K", "K", "10k", "10MB", "1.5G", "-1", " 1", "1073741825G"}) {
    EXPECT_FALSE(parse_size(wrong).ok()) << wrong;
  }
}

TEST(TextTest, CellCannotLeaveItsRow) {
  Table table({"NAME", "N"});
  table.add({"a\x1b[2Jb\nc", "\u202e7"});
  EXPECT_EQ(table.text(),
            "NAME          N\n"
            "a\\x1b[2Jb\\nc  \\u{202e}7\n");
  EXPECT_EQ(short_name("agents/7\n"), "7\\n");
}

// The widest columns behind the first give way, to 8 at least; then the line is cut.
TEST(TextTest, TablesFitTheirTerminal) {
  Table table({"NAME", "N", "WHAT"});
  table.right(1);
  table.add({"a long name of 26 columns.", "1", "twenty columns long."});
  table.add({"b", "22", "über"});
  EXPECT_EQ(table.text(), table.text(52));
  EXPECT_EQ(table.text(51),
            "NAME                         N  WHAT\n"
            "a long name of 26 columns.   1  twenty columns lon…\n"
            "b                           22  über\n");
  EXPECT_EQ(table.text(40),
            "NAME                         N  WHAT\n"
            "a long name of 26 columns.   1  twenty …\n"
            "b                           22  über\n");
  EXPECT_EQ(table.text(34),
            "NAME                         N  W…\n"
            "a long name of 26 columns.   1  t…\n"
            "b                           22  ü…\n");
  EXPECT_EQ(table.text(10),
            "NAME     …\n"
            "a long na…\n"
            "b        …\n");
}

TEST(TextTest, CutsTextThatDoesNotFit) {
  EXPECT_EQ(cut_to("über", 0), "über");
  EXPECT_EQ(cut_to("über", 4), "über");
  EXPECT_EQ(cut_to("über", 3), "üb…");
  EXPECT_EQ(cut_to("über", 1), "…");
  EXPECT_EQ(cut_to("", 1), "");
  EXPECT_EQ(cut_to_end("rübe", 0), "rübe");
  EXPECT_EQ(cut_to_end("rübe", 4), "rübe");
  EXPECT_EQ(cut_to_end("rübe", 3), "…be");
  EXPECT_EQ(cut_to_end("brü", 2), "…ü");
  EXPECT_EQ(cut_to_end("rübe", 1), "…");
  EXPECT_EQ(columns_left(0, 50), 0u);
  EXPECT_EQ(columns_left(80, 50), 30u);
  EXPECT_EQ(columns_left(60, 50), 16u);
}

TEST(TextTest, ColorsAreWantedWhereTheyCanBeSeen) {
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, true, nullptr, nullptr));
  EXPECT_TRUE(wants_color(ColorChoice::kAuto, true, "", "xterm"));
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, false, nullptr, "xterm"));
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, true, "0", "xterm")) << "any text";
  EXPECT_FALSE(wants_color(ColorChoice::kAuto, true, nullptr, "dumb"));
  EXPECT_TRUE(wants_color(ColorChoice::kOn, false, "1", "dumb"));
  EXPECT_FALSE(wants_color(ColorChoice::kOff, true, nullptr, "xterm"));
}

TEST(TextTest, TablesAlign) {
  Table table({"NAME", "N"});
  table.right(1);
  table.add({"lua", "7"});
  table.add({"größer", "1,234"});
  EXPECT_EQ(table.text(),
            "NAME        N\n"
            "lua         7\n"
            "größer  1,234\n");
}

TEST(TextTest, NamesWithoutTheirPrefix) {
  EXPECT_EQ(short_name("agents/7"), "7");
  EXPECT_EQ(short_name("sessions/session_x/pid_1"), "session_x/pid_1");
  EXPECT_EQ(short_name("x"), "x");
}

}  // namespace
}  // namespace collect::ctl
