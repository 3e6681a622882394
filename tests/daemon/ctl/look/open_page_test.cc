// `collectctl open`, as a user runs it: the page that it makes, and what shows it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/ctl/look/open_page.h"
#include "daemon/ctl/look/served_page.h"
#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/program_runner.h"
#include "tests/daemon/web/http_client.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using ::testing::AnyOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class OpenTest : public testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    write_planned_session();
    const fs::path browser = runner_.directory() / "browser.sh";
    std::ofstream(browser) << "#!/bin/sh\necho \"$#: $1\" > shown.new\nmv shown.new shown\n";
    fs::permissions(browser, fs::perms::owner_all);
    runner_.environment = {{"HOME", runner_.directory().string()},
                           {"XDG_CACHE_HOME", ""},
                           {"DISPLAY", ""},
                           {"WAYLAND_DISPLAY", ""},
                           {"BROWSER", browser.string() + ":firefox"}};
  }
  Ran open(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"open", "--no-serve"});
    arguments.push_back(session_.string());
    return runner_.run(arguments);
  }
  fs::path pages() const { return runner_.directory() / ".cache" / "collectord"; }
  std::vector<std::string> page_names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(pages())) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  ProgramRunner runner_;
};

TEST_F(OpenTest, MakesThePageOfConvertAndOpensIt) {
  const Ran ran = open({});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  ASSERT_EQ(page_names().size(), 1u);
  const fs::path page = pages() / page_names().front();
  EXPECT_THAT(page.filename().string(), StartsWith("session_20250102_030405-pid_42-"));
  EXPECT_EQ(ran.out, "file://" + page.string() + "\n");
  const fs::path shown = runner_.directory() / "shown";
  ASSERT_TRUE(eventually([&] { return fs::exists(shown); }));
  EXPECT_EQ(contents(shown), "1: file://" + page.string() + "\n");
  EXPECT_EQ(fs::status(pages()).permissions(), fs::perms::owner_all);

  ASSERT_EQ(
      runner_.run({"convert", session_.string(), "--to", "html", "-o", "page.html"}).exit_code, 0);
  EXPECT_EQ(contents(page), contents(runner_.directory() / "page.html"));

  ASSERT_EQ(open({"--no-browser", "--until", "1050"}).exit_code, 0);
  ASSERT_EQ(page_names().size(), 1u) << "of the same capture";
  EXPECT_NE(contents(page), contents(runner_.directory() / "page.html"));

  const std::string container = (runner_.directory() / (std::string(240, 'c') + ".rtc")).string();
  ASSERT_LE(runner_.run({"convert", session_.string(), "--to", "rtc", "-o", container}).exit_code,
            1);
  ASSERT_LE(runner_.run({"open", "--no-serve", "--no-browser", container}).exit_code, 1);
  EXPECT_EQ(page_names().size(), 2u) << "of a file with a long name";
}

TEST_F(OpenTest, ShowsTracesOfOtherPrograms) {
  const std::string trace = (runner_.directory() / "trace").string();
  write_text(trace, R"([{"ph":"X","pid":1,"tid":1,"ts":1,"dur":2,"name":"load_everything"},)");
  const Ran ran = runner_.run({"open", "--no-serve", "--no-browser", trace});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.err, "");
  ASSERT_EQ(page_names().size(), 1u);
  EXPECT_EQ(ran.out, "file://" + (pages() / page_names().front()).string() + "\n");
  EXPECT_GT(fs::file_size(pages() / page_names().front()), 10'000u);
}

TEST_F(OpenTest, WithoutADisplayItsAddressIsAll) {
  runner_.environment["BROWSER"] = "";
  const Ran alone = open({});
  EXPECT_EQ(alone.exit_code, 1);
  EXPECT_THAT(alone.out, StartsWith("file:///"));
  EXPECT_THAT(alone.err, EndsWith("collectctl: there is no display: open the page in a browser\n"));
  EXPECT_EQ(open({"--no-browser"}).exit_code, 0);

  runner_.environment["BROWSER"] = "./absent";
  const Ran absent = open({});
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.out, StartsWith("file:///"));
  EXPECT_THAT(absent.err, HasSubstr("collectctl: ./absent: "));
  EXPECT_EQ(open({"--no-browser"}).exit_code, 0);
}

TEST_F(OpenTest, NamedPageIsReplacedOnlyWhenForced) {
  const Ran ran = open({"--no-browser", "-o", "my page%.html"});
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_EQ(ran.out, "file://" + runner_.directory().string() + "/my%20page%25.html\n");
  EXPECT_FALSE(fs::exists(pages()));
  const Ran again = open({"--no-browser", "-o", "my page%.html"});
  EXPECT_EQ(again.exit_code, 2);
  EXPECT_EQ(again.out, "");
  EXPECT_THAT(again.err, HasSubstr("my page%.html: is there already; --force replaces it\n"));
  EXPECT_EQ(open({"--no-browser", "--force", "-o", "my page%.html"}).exit_code, 0);
}

TEST_F(OpenTest, OldestPagesGo) {
  fs::create_directories(pages());
  const auto now = fs::file_time_type::clock::now();
  for (int i = 0; i < 20; ++i) {
    const fs::path page = pages() / ("old_" + std::to_string(10 + i) + ".html");
    std::ofstream(page) << "page";
    fs::last_write_time(page, now - std::chrono::hours(30 - i));
  }
  std::ofstream(pages() / "notes.txt") << "mine";
  ASSERT_EQ(open({"--no-browser"}).exit_code, 0);
  const std::vector<std::string> left = page_names();
  ASSERT_EQ(left.size(), kKeptPages + 1);
  EXPECT_EQ(left[0], "notes.txt");
  EXPECT_EQ(left[1], "old_15.html");
  EXPECT_EQ(left[kKeptPages - 1], "old_29.html");
  EXPECT_THAT(left[kKeptPages], StartsWith("session_"));
}

TEST_F(OpenTest, MakesNoPageWhenItFails) {
  ASSERT_EQ(open({"--no-browser"}).exit_code, 0);
  const Ran none = open({"--thread", "4712"});
  EXPECT_EQ(none.exit_code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(page_names(), IsEmpty()) << "an old page would be taken for the new one";

  const Ran absent = runner_.run({"open", "absent"});
  EXPECT_EQ(absent.exit_code, 2);
  EXPECT_EQ(absent.err, "collectctl: absent: No such file or directory\n");
  EXPECT_THAT(open({"--from", "5", "--until", "4"}).err,
              HasSubstr("collectctl: --until is before --from; nothing was made\n"));
  EXPECT_EQ(runner_.run({"open"}).exit_code, 2) << "there is no ada_traces";

  runner_.environment["HOME"] = "";
  const Ran homeless = open({});
  EXPECT_EQ(homeless.exit_code, 2);
  EXPECT_EQ(homeless.err, "collectctl: HOME is not set: name a file for the page with -o\n");
  runner_.environment["XDG_CACHE_HOME"] = runner_.directory().string();
  EXPECT_THAT(open({"--no-browser"}).out,
              StartsWith("file://" + (runner_.directory() / "collectord" / "session_").string()));
  EXPECT_FALSE(fs::exists(runner_.directory() / "shown"));
}

TEST_F(OpenTest, IncompleteCaptureIsShownAndSaid) {
  fs::remove(session_ / "manifest.json");
  const Ran ran = open({"--no-browser"});
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_THAT(ran.out, StartsWith("file:///"));
  EXPECT_THAT(ran.err, HasSubstr("there is no manifest"));
}

TEST_F(OpenTest, OneSessionIsServedUntilItIsInterrupted) {
  runner_.start({"open", session_.string()});
  const fs::path shown = runner_.directory() / "shown";
  ASSERT_TRUE(eventually([&] { return fs::exists(shown); }));
  const std::string said = runner_.out_so_far();
  EXPECT_THAT(said, StartsWith("http://127.0.0.1:"));
  EXPECT_EQ(contents(shown), "1: " + said);

  web::Browser browser(said.substr(0, said.size() - 1));
  EXPECT_EQ(browser.get("/api/state").status, 403) << "before the token was shown";
  EXPECT_EQ(browser.sign_in().status, 200);
  EXPECT_EQ(browser.get("/api/state").body,
            "{\"opens\":\"session_20250102_030405/pid_42\",\"version\":1}");
  const std::string page = "/sessions/session_20250102_030405/pid_42";
  EXPECT_THAT(browser.get(page).body, HasSubstr("\"can_ask\":true"));
  const auto calls = browser.get(page + "/function?first=0&last=18446744073709551615&name=none");
  EXPECT_EQ(calls.status, 200);
  EXPECT_THAT(calls.body, HasSubstr("\"slowest\":[]"));
  EXPECT_EQ(browser.get("/sessions/session_20250102_030405/pid_43").status, 404);
  EXPECT_EQ(browser.post("/api/stop", "{\"session\":\"session_20250102_030405/pid_42\"}").status,
            405);
  EXPECT_FALSE(fs::exists(pages())) << "no file is made";

  runner_.send_signal(SIGINT);
  const Ran ran = runner_.finish();
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.err,
            "collectctl: served until Ctrl-C, or until its last page is closed for a minute\n");
}

TEST_F(OpenTest, OtherCaptureIsServedAsASession) {
  const fs::path scratch = runner_.directory() / "scratch";
  fs::create_directory(scratch);
  runner_.environment["TMPDIR"] = scratch.string();
  const std::string capture = (runner_.directory() / "a capture.wtf-trace").string();
  ASSERT_EQ(runner_.run({"convert", session_.string(), "--to", "wtf", "-o", capture}).exit_code, 0);
  runner_.start({"open", "--no-browser", capture});
  ASSERT_TRUE(eventually([&] { return runner_.out_so_far().ends_with("\n"); }));
  const std::string said = runner_.out_so_far();
  web::Browser browser(said.substr(0, said.size() - 1));
  EXPECT_EQ(browser.sign_in().status, 200);
  const std::string state = browser.get("/api/state").body;
  EXPECT_THAT(state, HasSubstr("\"opens\":\"a_capture\""));
  const std::string name = state.substr(10, state.find("\",") - 10);
  EXPECT_THAT(browser.get("/sessions/" + name).body, HasSubstr("\"can_ask\":true"));
  EXPECT_FALSE(fs::is_empty(scratch));
  EXPECT_FALSE(fs::exists(pages())) << "no file is made";

  runner_.send_signal(SIGINT);
  EXPECT_EQ(runner_.finish().exit_code, 0);
  EXPECT_TRUE(fs::is_empty(scratch)) << "the session went with the page";
}

TEST_F(OpenTest, WhatIsNoCaptureIsReportedOnce) {
  const std::string garbage = (runner_.directory() / "garbage").string();
  write_text(garbage, std::string(3000, '\x01'));
  const Ran ran = runner_.run({"open", "--no-browser", garbage});
  EXPECT_EQ(ran.exit_code, 2);
  EXPECT_THAT(ran.err, HasSubstr("not a capture"));
  EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
}

TEST_F(OpenTest, ServerEndsWhenItsLastPageIsClosed) {
  const fs::path said = runner_.directory() / "said";
  Status served;
  std::atomic<bool> has_ended{false};
  std::jthread server([&] {
    std::ofstream out(said);
    std::ostringstream err;
    ServedPage page;
    page.directory = session_.string();
    page.no_browser = true;
    page.closed_after = std::chrono::milliseconds(0);
    served = serve_page(std::move(page), out, err);
    has_ended = true;
  });
  ASSERT_TRUE(eventually([&] { return contents(said).ends_with("\n"); }));
  const std::string url = contents(said);
  web::Browser browser(url.substr(0, url.size() - 1));
  EXPECT_EQ(browser.sign_in().status, 200);
  // It looks five times a second whether a page is open.
  constexpr std::chrono::milliseconds kSomeLooks{600};
  EXPECT_TRUE(eventually([&] {
    if (has_ended) return true;
    web::HttpClient stream(browser.address().port);
    if (!stream.send("GET /api/events HTTP/1.1\r\nHost: " + browser.address().host() + "\r\n" +
                     browser.cookie_line() + "\r\n")) {
      return false;  // it ends now
    }
    EXPECT_THAT(stream.read_head().status, AnyOf(0, 200));
    std::this_thread::sleep_for(kSomeLooks);
    stream.close();
    std::this_thread::sleep_for(kSomeLooks);
    return false;
  }));
  server.join();
  EXPECT_TRUE(served.ok());
}

}  // namespace
}  // namespace collect::ctl
