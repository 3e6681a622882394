// The sentence that says what the agent does, and the lines of COLLECT_LOG.
#include "agent/drain/link/status.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace collect::agent {
namespace {

class StatusTest : public testing::Test {
 protected:
  ~StatusTest() override {
    enable_log(false);
    log_as(0);
  }
  // What `act` writes to standard error.
  template <class Act>
  static std::string errors_of(Act act) {
    testing::internal::CaptureStderr();
    act();
    return testing::internal::GetCapturedStderr();
  }
  static std::string line(const std::string& text, pid_t process = getpid()) {
    return "collect agent (" + std::to_string(process) + "): " + text + "\n";
  }
};

TEST_F(StatusTest, IsItsPartsInOneSentence) {
  set_status("one");
  EXPECT_STREQ(status(), "one");
  set_status("one", " two", " three", " four");
  EXPECT_STREQ(status(), "one two three four");
  const std::string longest(kStatusBytes, 'x');
  set_status(longest.c_str(), "y");
  EXPECT_EQ(status(), longest.substr(0, kStatusBytes - 1));
}

// Who has a sentence may read it while others come.
TEST_F(StatusTest, SentenceStaysForFifteenChanges) {
  set_status("the first");
  const char* const first = status();
  for (int i = 0; i < 15; ++i) {
    set_status("change ", std::to_string(i).c_str());
    EXPECT_STREQ(status(), ("change " + std::to_string(i)).c_str());
    EXPECT_STREQ(first, "the first");
  }
  // The same sentence is no change.
  set_status("change ", "14");
  EXPECT_STREQ(first, "the first");
}

TEST_F(StatusTest, LogsEachChangeOnceWhenLogging) {
  EXPECT_EQ(errors_of([] { set_status("quiet"); }), "");
  EXPECT_EQ(errors_of([] { log_line("quiet"); }), "");
  enable_log(true);
  EXPECT_EQ(errors_of([] { set_status("quiet"); }), "") << "it is no change";
  EXPECT_EQ(errors_of([] {
              set_status("loud ", "and clear");
              set_status("loud", " and clear");
            }),
            line("loud and clear"));
  EXPECT_EQ(errors_of([] { log_line("a line"); }), line("a line"));
  log_as(4711);
  EXPECT_EQ(errors_of([] { log_line("of another"); }), line("of another", 4711));
  enable_log(false);
  EXPECT_EQ(errors_of([] { log_line("quiet again"); }), "");
}

TEST_F(StatusTest, LineIsCutAndErrnoIsKept) {
  enable_log(true);
  const std::string text(1000, 'x');
  errno = 77;
  const std::string got = errors_of([&] { log_line(text.c_str()); });
  EXPECT_EQ(got, line(text).substr(0, kStatusBytes + 63));
  const int file = dup(STDERR_FILENO);
  ASSERT_GE(file, 0);
  close(STDERR_FILENO);
  errno = 77;
  log_line("unseen");
  EXPECT_EQ(errno, 77);
  ASSERT_EQ(dup2(file, STDERR_FILENO), STDERR_FILENO);
  close(file);
}

}  // namespace
}  // namespace collect::agent
