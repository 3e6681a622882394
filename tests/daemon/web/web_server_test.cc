// The server over real sockets of this machine, in front of a collector that a test scripts.
#include "daemon/web/web_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "daemon/web/limits.h"
#include "daemon/web/live/live_content.h"
#include "tests/daemon/control/fake_collector.h"
#include "tests/daemon/web/http_client.h"

namespace collect::web {
namespace {

namespace api = control::api;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class WebServerTest : public ::testing::Test {
 protected:
  WebServerTest() {
    collector_.add_session("session_a/pid_1", api::SESSION_STATE_ACTIVE);
    WebOptions options;
    options.address = "127.0.0.1:0";
    options.page_program = "/bin/true";
    auto started = WebServer::start(options, std::make_unique<LiveContent>(collector_));
    EXPECT_TRUE(started.ok());
    server_ = std::move(*started);
    browser_.emplace(server_->url());
    EXPECT_EQ(browser_->sign_in().status, 200);
  }

  uint16_t port() const { return browser_->address().port; }
  HttpClient client() const { return HttpClient(port()); }
  std::string get(const std::string& path) const {
    return browser_->get_with(path, browser_->cookie_line());
  }

  control::FakeCollector collector_;
  std::unique_ptr<WebServer> server_;
  std::optional<Browser> browser_;
};

TEST_F(WebServerTest, ServesThePageAndTheState) {
  EXPECT_THAT(server_->url(), StartsWith("http://127.0.0.1:"));
  EXPECT_THAT(browser_->get("/").body, HasSubstr("<script type=\"module\" src=\"/live.js\">"));
  const ReceivedAnswer state = browser_->get("/api/state");
  EXPECT_EQ(state.fields.at("content-type"), "application/json");
  EXPECT_EQ(json::parse(state.body)["sessions"][0]["name"], "session_a/pid_1");
  EXPECT_EQ(browser_->get("/sessions/session_a/pid_1").status, 200);
}

TEST_F(WebServerTest, OneConnectionCarriesManyRequests) {
  HttpClient client = this->client();
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(client.send(get("/api/state")));
    ASSERT_EQ(client.read_answer().status, 200);
  }
  // All at once, too: more than the server reads in one go.
  std::string many;
  for (int i = 0; i < 100; ++i) many += get(i % 2 == 0 ? "/live.css" : "/api/state");
  ASSERT_GT(many.size(), kReadBytes);
  ASSERT_TRUE(client.send(many));
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(client.read_answer().fields["content-type"],
              i % 2 == 0 ? "text/css; charset=utf-8" : "application/json");
  }
  EXPECT_TRUE(client.send(browser_->get_with("/", "Connection: close\r\n")));
  EXPECT_EQ(client.read_answer().fields["connection"], "close");
  EXPECT_TRUE(client.is_closed_by_server());
}

TEST_F(WebServerTest, RequestMayComeByteByByte) {
  HttpClient client = this->client();
  for (const char c : get("/api/state")) ASSERT_TRUE(client.send(std::string(1, c)));
  EXPECT_EQ(client.read_answer().status, 200);
}

TEST_F(WebServerTest, ButtonsReachTheCollector) {
  EXPECT_EQ(browser_->post("/api/stop", "{\"session\":\"session_a/pid_1\"}").status, 200);
  EXPECT_EQ(collector_.last_argument(), "sessions/session_a/pid_1");
}

TEST_F(WebServerTest, AnswerThatComesLaterIsSent) {
  collector_.hold_answers();
  HttpClient waiting = client();
  const std::string body = "{\"session\":\"session_a/pid_1\"}";
  const std::string host = browser_->address().host();
  ASSERT_TRUE(waiting.send(
      "POST /api/stop HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" + host +
      "\r\nContent-Type: application/json\r\n" + browser_->cookie_line() +
      "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body + get("/live.css")));
  collector_.wait_for_held(1);
  EXPECT_EQ(browser_->get("/api/state").status, 200) << "others are served meanwhile";
  collector_.release_all();
  EXPECT_EQ(waiting.read_answer().body, "{}\n");
  EXPECT_EQ(waiting.read_answer().fields["content-type"], "text/css; charset=utf-8");
}

TEST_F(WebServerTest, AnswerForAClientThatHasGoneGoesNowhere) {
  collector_.hold_answers();
  {
    HttpClient gone = client();
    const std::string host = browser_->address().host();
    ASSERT_TRUE(gone.send("POST /api/stop HTTP/1.1\r\nHost: " + host + "\r\nOrigin: http://" +
                          host + "\r\nContent-Type: application/json\r\n" +
                          browser_->cookie_line() +
                          "Content-Length: 29\r\n\r\n{\"session\":\"session_a/pid_1\"}"));
    collector_.wait_for_held(1);
  }
  collector_.release_all();
  EXPECT_EQ(browser_->get("/api/state").status, 200);
}

TEST_F(WebServerTest, AnswerAfterTheEndGoesNowhere) {
  collector_.hold_answers();
  std::thread asking([&] {
    EXPECT_EQ(browser_->post("/api/stop", "{\"session\":\"session_a/pid_1\"}").status, 0);
  });
  collector_.wait_for_held(1);
  server_->stop();
  asking.join();
  server_.reset();
  collector_.release_all();
}

TEST_F(WebServerTest, EventsTellWhatChanges) {
  HttpClient stream = client();
  ASSERT_TRUE(stream.send(get("/api/events")));
  const ReceivedAnswer head = stream.read_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.fields.at("content-type"), "text/event-stream");
  const auto next_state = [&] {
    std::string event = stream.read_until("\n\n");
    constexpr std::string_view kBegin = "event: state\ndata: ";
    if (!event.starts_with(kBegin)) return json();
    return json::parse(event.substr(kBegin.size()));
  };
  EXPECT_EQ(next_state()["sessions"].size(), 1u);
  collector_.add_session("session_b/pid_2", api::SESSION_STATE_ACTIVE);
  const json second = next_state();
  ASSERT_EQ(second["sessions"].size(), 2u);
  EXPECT_EQ(second["sessions"][0]["name"], "session_b/pid_2");
}

TEST_F(WebServerTest, RefusesAStreamBeyondTheLimit) {
  std::vector<HttpClient> streams;
  for (size_t i = 0; i < kMaxStreams; ++i) {
    streams.push_back(client());
    ASSERT_TRUE(streams.back().send(get("/api/events")));
    ASSERT_NE(streams.back().read_until("\n\n"), "");
  }
  EXPECT_EQ(browser_->get("/api/events").status, 503);
  streams.pop_back();
  bool is_served = false;
  for (int i = 0; i < 1000 && !is_served; ++i) {  // the server has to see the end first
    HttpClient next = client();
    ASSERT_TRUE(next.send(get("/api/events")));
    is_served = next.read_head().status == 200;
  }
  EXPECT_TRUE(is_served);
}

TEST_F(WebServerTest, NewConnectionTakesTheSlotOfAnIdleOne) {
  std::vector<HttpClient> idle;
  for (size_t i = 0; i < kMaxConnectionsPerPrincipal; ++i) {
    idle.push_back(client());
    ASSERT_TRUE(idle.back().send(get("/live.css")));
    ASSERT_EQ(idle.back().read_answer().status, 200);
  }
  HttpClient next = client();
  ASSERT_TRUE(next.send(get("/api/state")));
  EXPECT_EQ(next.read_answer().status, 200);
  EXPECT_TRUE(idle.front().is_closed_by_server());
  ASSERT_TRUE(idle.back().send(get("/live.css")));
  EXPECT_EQ(idle.back().read_answer().status, 200) << "the oldest goes, no other";
}

TEST_F(WebServerTest, AnswersInvalidRequestsAndCloses) {
  const std::string host = "Host: " + browser_->address().host() + "\r\n";
  const struct {
    std::string sent;
    int status;
  } cases[] = {
      {"\x16\x03\x01\x02\x01\x01", 400},
      {"garbage\r\n\r\n", 400},
      {"GET / HTTP/1.0\r\n" + host + "\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {std::string(kMaxHeadBytes + 1, 'G'), 431},
      {"GET / HTTP/1.1\r\n" + host + "X: " + std::string(kMaxHeadBytes, 'x') + "\r\n\r\n", 431},
      {"POST /api/stop HTTP/1.1\r\n" + host + "Content-Length: 99999999\r\n\r\n", 413},
  };
  for (const auto& one : cases) {
    HttpClient client = this->client();
    client.send(one.sent);  // it may be closed before all of it is sent
    EXPECT_EQ(client.read_answer().status, one.status) << one.sent.substr(0, 40);
    EXPECT_TRUE(client.is_closed_by_server());
  }
  EXPECT_EQ(browser_->get("/api/state").status, 200);
}

TEST_F(WebServerTest, ForeignHostsAndOriginsAreRefused) {
  const auto answer_to = [&](const std::string& request) {
    HttpClient client = this->client();
    client.send(request);
    return client.read_answer();
  };
  EXPECT_EQ(answer_to("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n").status, 421);
  const ReceivedAnswer foreign = answer_to(
      "POST /api/stop HTTP/1.1\r\nHost: " + browser_->address().host() +
      "\r\nOrigin: http://evil.example\r\nContent-Type: application/json\r\n" +
      browser_->cookie_line() + "Content-Length: 29\r\n\r\n{\"session\":\"session_a/pid_1\"}");
  EXPECT_EQ(foreign.status, 403);
  EXPECT_EQ(foreign.fields.count("access-control-allow-origin"), 0u);
  EXPECT_EQ(answer_to(browser_->get_with("/api/state", "")).status, 403);
  EXPECT_EQ(collector_.last_argument(), "");
}

// The first of the request's bytes starts its time, and further ones do not prolong it.
TEST_F(WebServerTest, SlowRequestIsEnded) {
  HttpClient slow = client();
  ASSERT_TRUE(slow.send("GET / HTTP/1.1\r\nX: "));
  const auto began = std::chrono::steady_clock::now();
  while (slow.send("x") && std::chrono::steady_clock::now() - began < 3 * kRequestDeadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(slow.read_answer().status, 408);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3 * kRequestDeadline);
}

TEST_F(WebServerTest, SilentConnectionIsEnded) {
  EXPECT_TRUE(client().is_closed_by_server());
}

TEST(WebServerStartTest, AddressesThatOthersCanReachAreRefused) {
  control::FakeCollector collector;
  const auto refused = [&](const std::string& address) {
    WebOptions options;
    options.address = address;
    const auto started = WebServer::start(options, std::make_unique<LiveContent>(collector));
    return started.ok() ? "started" : started.error().message;
  };
  EXPECT_THAT(refused("0.0.0.0:0"), HasSubstr("other machines can reach it"));
  EXPECT_THAT(refused("[::]:0"), HasSubstr("other machines can reach it"));
  EXPECT_THAT(refused("192.0.2.1:7712"), HasSubstr("other machines can reach it"));
  EXPECT_THAT(refused("unix:/tmp/web.sock"), HasSubstr("browsers open host:port"));
  EXPECT_THAT(refused("abstract:web"), HasSubstr("browsers open host:port"));
  EXPECT_THAT(refused("127.0.0.1"), HasSubstr("web address"));
}

class ViewerTest : public ::testing::Test {
 protected:
  ViewerTest() {
    namespace fs = std::filesystem;
    std::string name = (fs::temp_directory_path() / "viewer_XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::create_directories(folder_ + "/ui/v1");
    write("ui/index.html", "<title>viewer</title>");
    write("ui/v1/engine.wasm", "\1\2");
    write("secret", "not below it");
    fs::create_symlink(folder_ + "/secret", folder_ + "/ui/link.js");
    options_.address = "127.0.0.1:0";
    options_.page_program = "/bin/true";
    options_.viewer_folder = folder_ + "/ui";
  }
  ~ViewerTest() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& below, const std::string& text) const {
    std::ofstream(folder_ + "/" + below) << text;
  }

  std::string folder_;
  WebOptions options_;
  control::FakeCollector collector_;
};

TEST_F(ViewerTest, ItsFilesHaveAnAddressOfTheirOwn) {
  const auto server = WebServer::start(options_, std::make_unique<LiveContent>(collector_));
  ASSERT_TRUE(server.ok()) << server.error().message;
  Browser page((*server)->url());
  ASSERT_EQ(page.sign_in().status, 200);
  const std::string viewer = json::parse(page.get("/api/viewer").body)["perfetto"];
  EXPECT_NE(viewer + "/", (*server)->url().substr(0, (*server)->url().find('#')));
  const Browser foreign(viewer + "/#token=");
  const ReceivedAnswer first = foreign.get("/");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "<title>viewer</title>");
  EXPECT_EQ(first.fields.count("content-security-policy"), 0u) << "its scripts are its own";
  EXPECT_EQ(first.fields.count("cross-origin-opener-policy"), 0u) << "its opener speaks to it";
  EXPECT_EQ(first.fields.at("x-frame-options"), "DENY");
  const ReceivedAnswer engine = foreign.get("/v1/engine.wasm?hash");
  EXPECT_EQ(engine.fields.at("content-type"), "application/wasm");
  EXPECT_EQ(engine.body, "\1\2");
  for (const char* path : {"/none", "/v1", "/link.js", "/../secret", "/v1/../../secret", "//secret",
                           "/api/state", "/%2e%2e/secret"}) {
    EXPECT_EQ(foreign.get(path).status, 404) << path;
  }
  EXPECT_EQ(foreign.post("/", "{}").status, 405);
  EXPECT_THAT(foreign.get_with("/", "Host: attacker.example\r\n"),
              ::testing::Not(HasSubstr("viewer</title>")));
}

TEST_F(ViewerTest, FolderWithoutItIsSaid) {
  options_.viewer_folder = folder_;
  const auto empty = WebServer::start(options_, std::make_unique<LiveContent>(collector_));
  ASSERT_FALSE(empty.ok());
  EXPECT_THAT(empty.error().message, HasSubstr("no unpacked Perfetto UI"));
  options_.viewer_folder = folder_ + "/nowhere";
  EXPECT_FALSE(WebServer::start(options_, std::make_unique<LiveContent>(collector_)).ok());
}

TEST(WebServerStartTest, AddressInUseIsSaid) {
  control::FakeCollector collector;
  WebOptions options;
  options.address = "127.0.0.1:0";
  const auto first = WebServer::start(options, std::make_unique<LiveContent>(collector));
  ASSERT_TRUE(first.ok());
  options.address = "127.0.0.1:" + std::to_string(parse_url((*first)->url()).port);
  const auto second = WebServer::start(options, std::make_unique<LiveContent>(collector));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kAlreadyExists);
}

}  // namespace
}  // namespace collect::web
