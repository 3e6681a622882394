// What top shows and what its keys do, without a terminal and without a collector.
#include "daemon/ctl/look/top_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/ctl/terminal/terminal.h"

namespace collect::ctl {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

void add(control::v1::CallBatch& batch, const char* name, uint64_t self, uint64_t total,
         uint64_t calls, uint64_t longest) {
  control::v1::FunctionActivity* function = batch.add_functions();
  function->set_function(name);
  function->set_self_ns(self);
  function->set_total_ns(total);
  function->set_calls(calls);
  function->set_longest_ns(longest);
}

TopView view() {
  TopView view;
  view.seconds = 2;
  view.session.set_name("sessions/session_20260131_235959/pid_42");
  view.session.set_process_name("app");
  view.session.set_pid(42);
  view.session.set_device_id("phone");
  view.session.set_state(control::v1::SESSION_STATE_ACTIVE);
  view.session.set_events(1'234'567);
  view.session.set_stored_bytes(5'000'000);
  view.session.set_threads(3);
  view.session.set_lost_events(7);
  view.session.set_stall_count(2);
  view.session.set_stalled_ns(1'500'000'000);
  view.session.set_detail(control::v1::DETAIL_MODE_OFF);
  view.stored_bytes_per_second = 1'000'000;
  view.spooled_bytes = 3'000;
  view.batch.set_events(400'000);
  view.batch.set_lost_events(4);
  view.batch.set_unread_events(11);
  view.batch.set_skipped_events(22);
  add(view.batch, "parse", 1'000'000'000, 1'500'000'000, 2'000, 5'120'000);
  add(view.batch, "main", 0, 2'000'000'000, 1, 2'000'000'000);
  add(view.batch, "evil\x1b[2Jname", 250, 640, 100'000, 99);
  control::v1::ThreadActivity* thread = view.batch.add_threads();
  thread->set_thread_id(4711);
  thread->set_name("worker");
  thread->set_events(400'000);
  thread->set_depth(3);
  thread->set_function("parse");
  return view;
}

// The names at the end of the rows of functions.
std::vector<std::string> order_of(const TopView& view) {
  std::vector<std::string> names;
  for (const std::string& line : view.lines(0, 20)) {
    for (const char* name : {"parse", "main", "evil"}) {
      if (line.find(std::string("  ") + name) != std::string::npos) names.emplace_back(name);
    }
  }
  return names;
}

TEST(TopView, RatesAreThoseOfTheInterval) {
  const std::vector<std::string> lines = view().lines(0, 0);
  EXPECT_THAT(lines[0],
              StartsWith("app (42) on phone  session_20260131_235959/pid_42  recording  "));
  EXPECT_EQ(lines[1], "events 200 k/s, 1,234,567 stored; 1.0 MB/s, 5.0 MB; 3 threads; detail off");
  EXPECT_EQ(lines[2],
            "lost 7 (2/s); stalled 1.5 s in 2 stalls; behind: 11 unread, 22 skipped, 3.0 kB in the "
            "agent's spool");
  EXPECT_EQ(lines[4], "SELF %    SELF   TOTAL   CALLS/s  LONGEST  FUNCTION");
  EXPECT_EQ(lines[5], "  50.0  1.00 s  1.50 s   1.0 k/s  5.12 ms  parse");
}

TEST(TopView, TimesOnAProcessorComeFirst) {
  TopView shown = view();
  shown.batch.set_has_switches(true);
  shown.batch.mutable_functions(0)->set_cpu_self_ns(200);  // parse, which waited
  shown.batch.mutable_functions(1)->set_cpu_self_ns(0);
  shown.batch.mutable_functions(2)->set_cpu_self_ns(250);
  const std::vector<std::string> lines = shown.lines(0, 0);
  EXPECT_EQ(lines[4], "CPU %     CPU    SELF   TOTAL   CALLS/s  LONGEST  FUNCTION");
  EXPECT_EQ(lines[6], "  0.0  200 ns  1.00 s  1.50 s   1.0 k/s  5.12 ms  parse");
  EXPECT_THAT(order_of(shown), ElementsAre("evil", "parse", "main"));
  EXPECT_TRUE(shown.press('s'));
  EXPECT_THAT(order_of(shown), ElementsAre("parse", "evil", "main"));
  EXPECT_TRUE(shown.press('u'));
  EXPECT_THAT(order_of(shown), ElementsAre("evil", "parse", "main"));
}

TEST(TopView, KeysSort) {
  TopView shown = view();
  EXPECT_THAT(order_of(shown), ElementsAre("parse", "evil", "main"));
  EXPECT_TRUE(shown.press('t'));
  EXPECT_THAT(order_of(shown), ElementsAre("main", "parse", "evil"));
  EXPECT_TRUE(shown.press('c'));
  EXPECT_THAT(order_of(shown), ElementsAre("evil", "parse", "main"));
  EXPECT_TRUE(shown.press('l'));
  EXPECT_THAT(order_of(shown), ElementsAre("main", "parse", "evil"));
  EXPECT_TRUE(shown.press('s'));
  EXPECT_THAT(order_of(shown), ElementsAre("parse", "evil", "main"));
  EXPECT_TRUE(shown.press('x'));  // nothing
}

TEST(TopView, KeysFilterWhileTheyAreTyped) {
  TopView shown = view();
  for (const char key : std::string("/PAx\x7f")) EXPECT_TRUE(shown.press(key));
  EXPECT_THAT(shown.lines(80, 20).back(), HasSubstr("filter: PA_"));
  EXPECT_THAT(order_of(shown), ElementsAre("parse"));
  EXPECT_TRUE(shown.press('q'));  // a letter now
  EXPECT_THAT(order_of(shown), ElementsAre());
  EXPECT_TRUE(shown.press('\b'));
  EXPECT_TRUE(shown.press('\r'));
  EXPECT_THAT(shown.lines(0, 20).back(), HasSubstr("with \"PA\""));
  EXPECT_TRUE(shown.press('\x1b'));
  EXPECT_THAT(order_of(shown), ElementsAre("parse", "evil", "main"));
  EXPECT_TRUE(shown.press('/'));
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(shown.press('y'));
  EXPECT_LE(shown.filter.size(), 100u);
  EXPECT_TRUE(shown.press('\x1b'));
  EXPECT_EQ(shown.filter, "");
}

TEST(TopView, KeysThatEndIt) {
  for (const char key : {'q', '\x03'}) EXPECT_FALSE(view().press(key));
  TopView typing = view();
  EXPECT_TRUE(typing.press('/'));
  EXPECT_FALSE(typing.press('\x03'));
}

TEST(TopView, ThreadsAreAnotherTable) {
  TopView shown = view();
  EXPECT_TRUE(shown.press('h'));
  EXPECT_THAT(shown.lines(0, 20)[4], StartsWith(" TID  EVENTS/s  DEPTH  THREAD  IN FUNCTION"));
  EXPECT_THAT(shown.lines(0, 20)[5], StartsWith("4711   200 k/s      3  worker  parse"));
  EXPECT_TRUE(shown.press('h'));
  EXPECT_THAT(shown.lines(0, 20)[4], StartsWith("SELF %"));
}

TEST(TopView, PageFitsTheTerminal) {
  for (const size_t columns : {1, 20, 80}) {
    for (const size_t rows : {1, 2, 7, 24}) {
      const std::vector<std::string> lines = view().lines(columns, rows);
      EXPECT_LE(lines.size(), std::max<size_t>(rows, 2));
      for (const std::string& line : lines) {
        EXPECT_LE(columns_of(line), std::max<size_t>(columns, 20)) << line;
      }
    }
  }
  EXPECT_THAT(view().lines(80, 24), Each(Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace collect::ctl
