// The live page as a browser has it: a real daemon with --web, a real program that is traced, and
// HTTP over a real socket of this machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "daemon/web/page_request.h"
#include "tests/daemon/web/http_client.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

using nlohmann::json;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::StartsWith;
using web::HttpClient;
using web::ReceivedAnswer;

constexpr seconds kPatience{60};

std::string web_url(CollectorProcess& collector) {
  json ready;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    ready = json::parse(collector.process().output(), nullptr, false);
    return ready.is_object();
  })) << collector.process().output();
  return ready.is_object() ? ready.value("web", "") : "";
}

// What the script of a session's page reads.
json data_of(const std::string& page) {
  constexpr std::string_view kBegin = "<script id=\"data\" type=\"application/json\">";
  const size_t at = page.find(kBegin);
  if (at == std::string::npos) return nullptr;
  const size_t first = at + kBegin.size();
  return json::parse(page.substr(first, page.find("</script", first) - first), nullptr, false);
}

// Calls, total and self time by name.
using Totals = std::map<std::string, std::tuple<uint64_t, uint64_t, uint64_t>>;

Totals totals_of(const json& page) {
  Totals totals;
  for (const json& function : page["functions"]) {
    totals[page["names"][function[0].get<size_t>()].get<std::string>()] = {function[1], function[2],
                                                                           function[3]};
  }
  return totals;
}

Totals totals_of_report(const json& report) {
  Totals totals;
  for (const json& function : report["functions"]) {
    totals[function["name"].get<std::string>()] = {function["calls"], function["total_ns"],
                                                   function["self_ns"]};
  }
  return totals;
}

class WebTest : public ::testing::Test {
 protected:
  WebTest()
      : collector_(scratch_, {"--web", "127.0.0.1:0", "--ready-fd", "1"}),
        browser_(web_url(collector_)) {}

  std::unique_ptr<ChildProcess> trace(const Arguments& command) {
    return std::make_unique<ChildProcess>(scratch_.path(), command, collector_.tracing());
  }
  json state() {
    const ReceivedAnswer answer = browser_.get("/api/state");
    EXPECT_EQ(answer.status, 200) << answer.body;
    const json read = json::parse(answer.body, nullptr, false);
    return read.is_object() ? read : json{{"sessions", json::array()}};
  }
  // A session of this process as the page shows it, when there is one as wanted.
  json wait_for_session(pid_t pid, const std::function<bool(const json&)>& is_wanted) {
    json found;
    json shown;
    EXPECT_TRUE(eventually(kPatience, [&] {
      shown = state();
      for (const json& session : shown["sessions"]) {
        if (session["pid"] == pid && is_wanted(session)) found = session;
      }
      return found.is_object();
    })) << shown;
    return found;
  }
  // The event that says that this process is recorded; "" when the stream ended.
  static std::string event_of(HttpClient& events, pid_t pid) {
    std::string event;
    do {
      event = events.read_until("\n\n");
    } while (!event.empty() && (event.find("/pid_" + std::to_string(pid)) == std::string::npos ||
                                event.find("\"state\":\"active\"") == std::string::npos));
    return event;
  }
  json page_of(const std::string& session) {
    return data_of(browser_.get("/sessions/" + session).body);
  }
  static std::string named(const std::string& session, const json& more = json::object()) {
    json body = more;
    body["session"] = session;
    return body.dump();
  }

  Scratch scratch_;
  CollectorProcess collector_;
  web::Browser browser_;
};

TEST_F(WebTest, ShowsARunningRecordingAsTheReportDoes) {
  ASSERT_EQ(browser_.sign_in().status, 200);
  HttpClient events(browser_.address().port);
  ASSERT_TRUE(events.send(browser_.get_with("/api/events", browser_.cookie_line())));
  EXPECT_EQ(events.read_head().status, 200);
  EXPECT_THAT(events.read_until("\n\n"), HasSubstr("\"sessions\":[]"));

  const auto program = trace({traced_program("steady"), "pace", "100000"});
  // The page learns of the session without asking.
  EXPECT_THAT(event_of(events, program->pid()),
              HasSubstr("\"pid\":" + std::to_string(program->pid())));
  const json shown = wait_for_session(program->pid(), [](const json& session) {
    return session["events"] > 1000 && session["events_per_second"] > 100;
  });
  EXPECT_EQ(shown["process"], "steady");
  EXPECT_EQ(shown["threads"], 1);
  EXPECT_EQ(shown["sealed"], false);
  const std::string name = shown["name"];

  // While it records its functions have names, and a later page has more calls.
  json first;
  ASSERT_TRUE(eventually(kPatience, [&] {
    first = page_of(name);
    return first.is_object() && totals_of(first).contains("step");
  })) << first;
  EXPECT_EQ(first["can_refresh"], true);
  EXPECT_THAT(first["title"].get<std::string>(), StartsWith("steady ("));
  const uint64_t calls = std::get<0>(totals_of(first)["step"]);
  EXPECT_TRUE(
      eventually(kPatience, [&] { return std::get<0>(totals_of(page_of(name))["step"]) > calls; }));

  // So has collectctl open, which says that the session is not sealed.
  const Ending opened = collector_.ctl(
      {"open", "--no-browser", "-o", scratch_ / "page.html", collector_.root() + "/" + name});
  EXPECT_TRUE(opened.exited_with(0)) << opened.errors;
  EXPECT_THAT(opened.errors, HasSubstr("not sealed"));
  EXPECT_THAT(totals_of(data_of(read_text_file(scratch_ / "page.html"))), Contains(Key("step")));

  EXPECT_EQ(browser_.post("/api/detail", named(name, {{"mode", "on"}})).status, 200);
  wait_for_session(program->pid(), [](const json& session) {
    return session["detail"] == "on" && session["detail_records"] > 0;
  });
  EXPECT_EQ(browser_.post("/api/detail", named(name, {{"mode", "off"}})).status, 200);
  EXPECT_EQ(
      browser_.post("/api/marker", named(name, {{"text", "the door </script> opens"}})).status,
      200);
  const ReceivedAnswer snapshot = browser_.post("/api/snapshot", named(name));
  EXPECT_EQ(snapshot.status, 200) << snapshot.body;
  const ReceivedAnswer stopped = browser_.post("/api/stop", named(name));
  EXPECT_EQ(stopped.status, 200) << stopped.body;
  const json sealed = wait_for_session(program->pid(), [&](const json& session) {
    return session["name"] == name && session["sealed"] == true && session["names"] == "done";
  });
  EXPECT_EQ(sealed["state"], "complete");
  EXPECT_EQ(sealed["health"], "");

  const json page = page_of(name);
  ASSERT_TRUE(page.is_object());
  EXPECT_FALSE(page.contains("can_refresh"));
  EXPECT_EQ(page["missing"], json::array());
  const Ending report = collector_.ctl({"report", "--json", collector_.root() + "/" + name});
  const Totals expected = totals_of_report(json::parse(report.output));
  EXPECT_EQ(totals_of(page), expected);
  EXPECT_THAT(expected, Contains(Key("step")));
  const RecordedSession session(collector_.root() + "/" + name);
  EXPECT_EQ(session.manifest()["markers"][0]["text"], "the door </script> opens");
  program->send_signal(SIGKILL);
}

TEST_F(WebTest, RefusesRequestsThatAreNotFromThePage) {
  const auto program = trace({traced_program("steady"), "pace", "100000"});
  ASSERT_EQ(browser_.sign_in().status, 200);
  const std::string name = wait_for_session(
      program->pid(), [](const json& session) { return session["state"] == "active"; })["name"];
  const std::string host = "Host: " + browser_.address().host() + "\r\n";
  const std::string body = named(name);
  const std::string stop =
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  const std::string origin = "Origin: http://" + browser_.address().host() + "\r\n";
  const std::string cookie = browser_.cookie_line();
  const struct {
    const char* who;
    std::string request;
    int status;
  } cases[] = {
      {"a rebinding page reads",
       "GET /api/state HTTP/1.1\r\nHost: evil.example\r\n" + cookie + "\r\n", 421},
      {"a rebinding page writes",
       "POST /api/stop HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n" + cookie +
           stop,
       421},
      {"a page of another origin writes",
       "POST /api/stop HTTP/1.1\r\n" + host + "Origin: http://evil.example\r\n" + cookie + stop,
       403},
      {"a form of another origin writes",
       "POST /api/stop HTTP/1.1\r\n" + host + "Origin: null\r\n" + cookie + stop, 403},
      {"a page of another port reads",
       browser_.get_with("/api/state", "Sec-Fetch-Site: same-site\r\n" + cookie), 403},
      {"no one reads", browser_.get_with("/api/state", ""), 403},
      {"no one listens", browser_.get_with("/api/events", ""), 403},
      {"no one opens", browser_.get_with("/sessions/" + name, ""), 403},
      {"no one writes", "POST /api/stop HTTP/1.1\r\n" + host + origin + stop, 403},
      {"someone guesses",
       "POST /api/sign-in HTTP/1.1\r\n" + host + origin +
           "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"token\":\"1234\"}",
       403},
      {"a path that leaves", browser_.get_with("/sessions/../../etc/passwd", cookie), 404},
      {"a head without end", "GET / HTTP/1.1\r\n" + host + "X: " + std::string(1 << 20, 'x'), 431},
      {"garbage", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11), 400},
      {"gRPC", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400},
  };
  for (const auto& one : cases) {
    HttpClient client(browser_.address().port);
    client.send(one.request);
    const ReceivedAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, one.status) << one.who << ": " << answer.body;
    EXPECT_EQ(answer.fields.count("set-cookie"), 0u) << one.who;
    EXPECT_EQ(answer.fields.count("access-control-allow-origin"), 0u) << one.who;
  }
  HttpClient slow(browser_.address().port);
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\n"));
  EXPECT_EQ(slow.read_answer().status, 408);
  wait_for_session(program->pid(), [&](const json& session) {
    return session["name"] == name && session["state"] == "active";
  });
  program->send_signal(SIGKILL);
}

TEST_F(WebTest, AnotherUserOfThisMachineGetsNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  const std::string request = browser_.get_with("/", "");
  const auto ask = [&] {
    HttpClient client(browser_.address().port);
    client.send(request);
    const ReceivedAnswer answer = client.read_answer();
    return std::to_string(answer.status) + " " + answer.body;
  };
  const std::string refused = fakes::as_other_user(ask);
  EXPECT_THAT(refused, StartsWith("403 {\"error\":\"user 65534 may not connect"));
  EXPECT_THAT(refused, HasSubstr("local_access"));
  EXPECT_THAT(ask(), StartsWith("200 <!doctype html>"));
}

TEST_F(WebTest, LogHasTheAddress) {
  const std::string line =
      "live page at http://" + browser_.address().host() + "/#token=" + browser_.address().token;
  EXPECT_TRUE(eventually(seconds(30), [&] {
    return collector_.process().errors().find(line) != std::string::npos;
  })) << collector_.process().errors();
  EXPECT_EQ(browser_.address().token.size(), 64u);
}

TEST(WebStartTest, AddressThatOthersCanReachIsRefused) {
  Scratch scratch;
  for (const char* address : {"0.0.0.0:0", "[::]:0", "unix:/tmp/web.sock"}) {
    const Ending ending =
        run(scratch.path(), {program("collectord"), "--root", scratch / "root", "--ingest",
                             "127.0.0.1:0", "--control", "127.0.0.1:0", "--web", address});
    EXPECT_TRUE(ending.exited_with(2)) << ending.describe();
    EXPECT_THAT(ending.errors, HasSubstr(std::string("web address ") + address));
  }
}

TEST(WebStartTest, RunServesItsLivePageWhileTheProgramRuns) {
  Scratch scratch;
  ChildProcess recording(scratch.path(),
                         {program("collectctl"), "run", "--web", "-o", scratch / "traces", "--",
                          traced_program("steady"), "pace", "100000"});
  constexpr std::string_view kSays = "collectctl: live page: ";
  std::string url;
  ASSERT_TRUE(eventually(seconds(30), [&] {
    const std::string said = recording.errors();
    const size_t at = said.find(kSays);
    if (at == std::string::npos || said.find('\n', at) == std::string::npos) return false;
    url = said.substr(at + kSays.size(), said.find('\n', at) - at - kSays.size());
    return true;
  })) << recording.errors();
  web::Browser browser(url);
  ASSERT_EQ(browser.sign_in().status, 200);
  json session;
  ASSERT_TRUE(eventually(kPatience, [&] {
    const json sessions = json::parse(browser.get("/api/state").body)["sessions"];
    if (!sessions.empty()) session = sessions[0];
    return session.is_object() && session["events"] > 100;
  }));
  EXPECT_EQ(session["process"], "steady");
  ::kill(session["pid"].get<pid_t>(), SIGUSR2);  // the program ends by itself
  EXPECT_TRUE(recording.wait(kPatience).exited_with(0)) << recording.errors();
  EXPECT_EQ(browser.get("/").status, 0) << "the page ends with the run";
}

// What collect-page answers to these bytes on its standard input.
std::string page_program_says(const Scratch& scratch, const std::string& request) {
  write_text_file(scratch / "request", request);
  const Ending ending = run(scratch.path(), {"sh", "-c", "exec \"$0\" < \"$1\"",
                                             program("collect-page"), scratch / "request"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  return ending.output;
}

TEST(PageProgramTest, ReportsInvalidRequestsAndMissingSessions) {
  const Scratch scratch;
  for (const char* request : {"", "garbage", "{\"directory\":\"/\"}"}) {
    EXPECT_THAT(page_program_says(scratch, request), StartsWith("{\"error\":\"not a request"));
  }
  web::PageRequest nowhere{scratch / "nowhere", false, std::nullopt};
  EXPECT_THAT(page_program_says(scratch, nowhere.to_json()), HasSubstr("No such file"));
  write_text_file(scratch / "file", "text");
  nowhere.directory = scratch / "file";
  EXPECT_THAT(page_program_says(scratch, nowhere.to_json()), HasSubstr(": no session"));
}

TEST(PageProgramTest, DamagedSessionIsAPageThatSaysSo) {
  const Scratch scratch;
  const Ending recorded =
      run(scratch.path(), {program("collectctl"), "run", "-o", scratch / "traces", "--",
                           traced_program("steady"), "fill", "100000"});
  ASSERT_TRUE(recorded.exited_with(0)) << recorded.errors;
  const std::string session = session_directories(scratch / "traces").at(0);
  const std::string index = session + "/thread_0/index.atf";
  const web::PageRequest request{session, false, std::nullopt};
  const json whole = data_of(page_program_says(scratch, request.to_json()));
  ASSERT_TRUE(whole.is_object());
  EXPECT_EQ(whole["missing"], json::array());
  EXPECT_EQ(std::get<0>(totals_of(whole)["step"]), 100000u);
  std::filesystem::resize_file(index, std::filesystem::file_size(index) / 2);
  const json half = data_of(page_program_says(scratch, request.to_json()));
  ASSERT_TRUE(half.is_object());
  EXPECT_FALSE(half["missing"].empty());
  EXPECT_LT(std::get<0>(totals_of(half)["step"]), 60000u);
  write_text_file(index, std::string(1000, '\xff'));
  const json none = data_of(page_program_says(scratch, request.to_json()));
  ASSERT_TRUE(none.is_object());
  EXPECT_EQ(none["functions"], json::array());
  EXPECT_FALSE(none["missing"].empty());
}

// Without the setting for a live page there is no port for it.
TEST(WebStartTest, WithoutTheSettingThereIsNoLivePage) {
  Scratch scratch;
  CollectorProcess collector(scratch, {"--ready-fd", "1"});
  EXPECT_EQ(web_url(collector), "");
}

}  // namespace
}  // namespace collect::e2e
