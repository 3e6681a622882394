#include "daemon/ctl/check/inspect.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using testing::fs::path;

class Inspect : public testing::OfflineTest {
 protected:
  int run(const path& where, bool as_json = false) {
    out_.str("");
    InspectOptions options;
    options.path = where.string();
    options.json = as_json;
    return inspect(options, out_, err_);
  }
};

TEST_F(Inspect, SaysWhatASessionIs) {
  write_planned_session();
  EXPECT_EQ(run(session_), 0);
  const std::string text = out_.str();
  EXPECT_NE(text.find("ATF session, ok"), std::string::npos) << text;
  EXPECT_NE(text.find("12 in 1 thread, 4 details, 0 lost"), std::string::npos) << text;
  EXPECT_NE(text.find("thread 0 \"main\""), std::string::npos) << text;
  EXPECT_NE(text.find("version 2, x86_64, linux, clock boottime, thread id 4711"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("1000..1110 ns (110 ns)"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos) << "no colour unless it is a terminal";
}

TEST_F(Inspect, JsonIsOneDocument) {
  write_planned_session();
  EXPECT_EQ(run(session_, true), 0);
  const json document = json::parse(out_.str());
  EXPECT_EQ(document["kind"], "session");
  EXPECT_EQ(document["result"], "ok");
  EXPECT_EQ(document["events"], 12);
  EXPECT_EQ(document["manifest"]["state"], "complete");
  EXPECT_EQ(document["threads"][0]["tid"], 4711);
  EXPECT_EQ(document["threads"][0]["calls"], 6);
  EXPECT_EQ(document["threads"][0]["detail"]["documented_payloads"], 4);
  EXPECT_EQ(document["threads"][0]["checksum"], "ok");
}

TEST_F(Inspect, FilesAreRecognisedByContentAndNotByName) {
  write_planned_session();
  const path thread = session_ / "thread_0";
  testing::fs::copy_file(thread / "index.atf", root_ / "first.bin");
  testing::fs::copy_file(thread / "detail.atf", root_ / "index.txt");
  EXPECT_EQ(run(root_ / "first.bin", true), 0);
  EXPECT_EQ(json::parse(out_.str())["kind"], "index");
  EXPECT_EQ(run(root_ / "index.txt", true), 0);
  const json detail = json::parse(out_.str());
  EXPECT_EQ(detail["kind"], "detail");
  EXPECT_EQ(detail["detail_records"], 4);
}

TEST_F(Inspect, UnknownContentIsShownByItsFirstBytes) {
  write_text(root_ / "x", "hello, this is text");
  EXPECT_EQ(run(root_ / "x"), 1);
  EXPECT_NE(out_.str().find("begins with 68656c6c6f"), std::string::npos) << out_.str();
  EXPECT_EQ(run(root_ / "x", true), 1);
  EXPECT_TRUE(json::parse(out_.str())["format"].is_null());
  write_text(root_ / "empty", "");
  EXPECT_EQ(run(root_ / "empty"), 1);
}

TEST_F(Inspect, RejectedThreadDoesNotHideTheOthers) {
  write_planned_session();
  write_thread(1, {'n', 'o'});
  EXPECT_EQ(run(session_), 0);
  EXPECT_NE(out_.str().find("ATF session, partial"), std::string::npos) << out_.str();
  EXPECT_NE(out_.str().find("thread 1: rejected"), std::string::npos);
  EXPECT_NE(out_.str().find("12 events"), std::string::npos);
}

// A thread's name comes from a foreign program and must not steer the terminal.
TEST_F(Inspect, ControlCharactersOfNamesDoNotReachTheTerminal) {
  write_planned_session();
  std::string manifest = planned_manifest();
  manifest.replace(manifest.find("\"main\""), 6, "\"ma\\u001b[2Jin\"");
  write_text(session_ / "manifest.json", manifest);
  EXPECT_EQ(run(session_), 0);
  EXPECT_EQ(out_.str().find('\x1b'), std::string::npos);
  EXPECT_NE(out_.str().find("\"ma\\x1b[2Jin\""), std::string::npos) << out_.str();
}

}  // namespace
}  // namespace collect::ctl
