#include "daemon/log.h"

#include <gmock/gmock.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "formats/core/text/printable.h"

namespace collect::daemon {
namespace {

class LogTest : public testing::Test {
 protected:
  LogTest() { set_log_format(logger_); }

  // The line without its time.
  std::string logged(const std::string& sentence) {
    out_.str("");
    logger_.info(sentence);
    logger_.flush();
    const std::string line = out_.str();
    return line.substr(line.find(' ') + 1);
  }

  std::ostringstream out_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(out_)};
};

TEST_F(LogTest, LinesKeepTheirForm) {
  EXPECT_EQ(logged("agents/7 " + in_quotes("größer") + " connected"),
            "info agents/7 \"größer\" connected\n");
  EXPECT_THAT(out_.str(), testing::MatchesRegex("[0-9-]+T[0-9:.]+ info .*\n"));
}

TEST_F(LogTest, PeerCannotForgeALineOrMoveTheCursor) {
  const std::string forged =
      "x\n2026-01-01T00:00:00.000 info agents/1 is root\x1b[2J\x9b\u009b31m\u202e";
  EXPECT_EQ(
      logged("agents/7 " + in_quotes(forged) + " connected"),
      "info agents/7 \"x\\n2026-01-01T00:00:00.000 info agents/1 is root\\x1b[2J\\x9b\\u{9b}31m"
      "\\u{202e}\" connected\n");
  EXPECT_EQ(logged("a reason that no one escaped: a\r\nb\x1b]0;c\x07"),
            "info a reason that no one escaped: a\\r\\nb\\x1b]0;c\\x07\n");
}

TEST_F(LogTest, LineHasABound) {
  EXPECT_LT(logged(std::string(1 << 20, '\x1b')).size(), kMaxSentenceBytes + 100);
}

}  // namespace
}  // namespace collect::daemon
