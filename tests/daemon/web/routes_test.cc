#include "daemon/web/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <future>
#include <memory>

#include "daemon/web/live/live_content.h"
#include "formats/html/writer.h"
#include "tests/daemon/control/fake_collector.h"

namespace collect::web {
namespace {

namespace api = control::api;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kHost[] = "127.0.0.1:7712";
constexpr char kOrigin[] = "http://127.0.0.1:7712";

class RoutesTest : public ::testing::Test {
 protected:
  RoutesTest() { collector_.add_session("session_a/pid_1", api::SESSION_STATE_ACTIVE); }

  HttpAnswer ask(HttpRequest request) {
    std::promise<HttpAnswer> answered;
    routes_.serve(request, std::make_shared<std::atomic<bool>>(false),
                  [&](HttpAnswer answer) { answered.set_value(std::move(answer)); });
    return answered.get_future().get();
  }
  static HttpRequest get(const std::string& path, bool is_signed_in = true) {
    HttpRequest request;
    request.method = "GET";
    request.target = path;
    request.fields = {{"host", kHost}};
    if (is_signed_in) request.fields.emplace_back("cookie", "collectord_7712=secret");
    return request;
  }
  static HttpRequest post(const std::string& path, const std::string& body,
                          bool is_signed_in = true) {
    HttpRequest request = get(path, is_signed_in);
    request.method = "POST";
    request.fields.emplace_back("origin", kOrigin);
    request.fields.emplace_back("content-type", "application/json");
    request.body = body;
    return request;
  }

  control::FakeCollector collector_;
  asio::io_context io_;
  const WebAccess access_{{"token", "secret"}, "127.0.0.1", 7712};
  LiveContent content_{collector_};
  LiveFeed feed_{io_, content_};
  PageMaker pages_{"/bin/cat"};
  Routes routes_{access_, content_, feed_, pages_, std::nullopt, "http://viewer"};
};

TEST_F(RoutesTest, FilesOfThePageNeedNoCookie) {
  for (const auto& [path, type] : {std::pair{"/", "text/html; charset=utf-8"},
                                   {"/live.js", "text/javascript; charset=utf-8"},
                                   {"/sessions.js", "text/javascript; charset=utf-8"},
                                   {"/live.css", "text/css; charset=utf-8"},
                                   {"/?a", "text/html; charset=utf-8"}}) {
    const HttpAnswer answer = ask(get(path, false));
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_EQ(answer.content_type, type);
    EXPECT_GT(answer.body.size(), 300u);
  }
  // They load nothing but each other, and nothing becomes markup.
  for (const char* path : {"/", "/live.js", "/sessions.js", "/live.css"}) {
    const std::string text = ask(get(path, false)).body;
    for (const char* word : {"http:", "https:", "//cdn", "innerHTML", "outerHTML",
                             "insertAdjacentHTML", "document.write", "eval(", "style=\""}) {
      EXPECT_THAT(text, Not(HasSubstr(word))) << path;
    }
  }
}

TEST_F(RoutesTest, EverythingElseNeedsTheCookie) {
  for (const char* path : {"/api/state", "/api/events", "/sessions/session_a/pid_1", "/other"}) {
    EXPECT_EQ(ask(get(path, false)).status, 403) << path;
  }
  for (const char* path : {"/api/stop", "/api/detail", "/api/marker", "/api/snapshot"}) {
    EXPECT_EQ(ask(post(path, "{\"session\":\"session_a/pid_1\"}", false)).status, 403) << path;
  }
  EXPECT_EQ(collector_.last_argument(), "");
  HttpRequest wrong = get("/api/state", false);
  wrong.fields.emplace_back("cookie", "collectord_7712=token");
  EXPECT_EQ(ask(wrong).status, 403) << "the token is no cookie";
}

TEST_F(RoutesTest, TokenSignsIn) {
  EXPECT_EQ(ask(post("/api/sign-in", "{\"token\":\"token\"}", false)).status, 200);
  EXPECT_EQ(ask(post("/api/sign-in", "{\"token\":\"other\"}", false)).status, 403);
  EXPECT_EQ(ask(post("/api/sign-in", "token", false)).status, 400);
  EXPECT_EQ(ask(post("/api/sign-in", "{\"token\":7}", false)).status, 400);
}

TEST_F(RoutesTest, StateAndEvents) {
  const HttpAnswer state = ask(get("/api/state"));
  EXPECT_EQ(state.status, 200);
  EXPECT_THAT(state.body, HasSubstr("\"name\":\"session_a/pid_1\""));
  EXPECT_TRUE(ask(get("/api/events")).is_stream);
  EXPECT_EQ(ask(get("/api/viewer")).body,
            "{\"perfetto\":\"http://viewer\",\"is_held_by_pages\":false}\n");
}

TEST_F(RoutesTest, PathTakesItsMethod) {
  for (const char* path : {"/", "/api/state", "/api/events", "/nothing"}) {
    const HttpAnswer answer = ask(post(path, "{}"));
    EXPECT_EQ(answer.status, 405) << path;
    ASSERT_EQ(answer.fields.size(), 1u);
    EXPECT_EQ(answer.fields[0], std::pair(std::string("Allow"), std::string("GET")));
  }
  for (const char* path : {"/api/stop", "/api/sign-in"}) {
    EXPECT_EQ(ask(get(path)).status, 405) << path;
  }
  HttpRequest head = get("/");
  head.method = "HEAD";
  head.fields.emplace_back("origin", kOrigin);
  EXPECT_EQ(ask(head).status, 405);
}

TEST_F(RoutesTest, PostHasJson) {
  HttpRequest request = post("/api/stop", "{\"session\":\"session_a/pid_1\"}");
  for (auto& [name, value] : request.fields) {
    if (name == "content-type") value = "text/plain";
  }
  EXPECT_EQ(ask(request).status, 415);
  EXPECT_EQ(collector_.last_argument(), "");
}

TEST_F(RoutesTest, ForeignHostOrOriginGetsNothing) {
  HttpRequest request = get("/");
  request.fields[0].second = "evil.example:7712";
  EXPECT_EQ(ask(request).status, 421);
  request = post("/api/stop", "{\"session\":\"session_a/pid_1\"}");
  for (auto& [name, value] : request.fields) {
    if (name == "origin") value = "http://evil.example";
  }
  EXPECT_EQ(ask(request).status, 403);
  EXPECT_EQ(collector_.last_argument(), "");
}

// The request that collect-page would get comes back as the page.
TEST_F(RoutesTest, PageOfASessionIsMadeOfItsDirectory) {
  collector_.add_session("session_b/pid_2", api::SESSION_STATE_COMPLETE);
  const HttpAnswer recording = ask(get("/sessions/session_a/pid_1"));
  // An object that has no error is no page.
  EXPECT_EQ(recording.status, 500);
  auto pages = std::make_unique<PageMaker>("/bin/true");
  Routes routes(access_, content_, feed_, *pages, std::nullopt, "http://viewer");
  std::promise<HttpAnswer> answered;
  routes.serve(get("/sessions/session_b/pid_2"), std::make_shared<std::atomic<bool>>(false),
               [&](HttpAnswer answer) { answered.set_value(std::move(answer)); });
  const HttpAnswer page = answered.get_future().get();
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_THAT(page.content_policy, HasSubstr("script-src 'sha256-"));
  EXPECT_THAT(page.content_policy, Not(HasSubstr("unsafe")));
  EXPECT_THAT(page.content_policy, HasSubstr("connect-src 'self';"));
  EXPECT_THAT(head_of(page, true), HasSubstr("Opener-Policy: same-origin-allow-popups\r\n"));
  pages.reset();  // its thread has let go of it then
  EXPECT_EQ(page.held.use_count(), 1) << "it counts until it was sent";
}

// The page may ask its server, and speak to the window that it opens.
TEST_F(RoutesTest, PartsOfASessionAreData) {
  collector_.add_session("session_b/pid_2", api::SESSION_STATE_COMPLETE);
  const HttpAnswer bars = ask(get("/sessions/session_b/pid_2/bars?first=5&last=9"));
  EXPECT_EQ(bars.status, 200);
  EXPECT_EQ(bars.content_type, "application/json");
  EXPECT_FALSE(bars.opens_windows);
  const auto asked = PageRequest::parse(bars.body);  // which comes back as it is, here
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(asked->want, PageWant::kBars);
  EXPECT_EQ(asked->first_ns, 5u);
  EXPECT_EQ(asked->last_ns, 9u);
  const HttpAnswer trace = ask(get("/sessions/session_b/pid_2/perfetto?first=0&last=9"));
  EXPECT_EQ(trace.content_type, "application/octet-stream");
  for (const char* query :
       {"", "?", "?first=5", "?first=5&last=", "?first=5&last=4", "?first=5&last=9&",
        "?last=9&first=5", "?first=-1&last=9", "?first=5&last=9&more=1",
        "?first=5&last=18446744073709551616", "?first=5&last=9x", "?first= 5&last=9"}) {
    EXPECT_EQ(ask(get(std::string("/sessions/session_b/pid_2/window") + query)).status, 400)
        << query;
  }
  const auto function = PageRequest::parse(
      ask(get("/sessions/session_b/pid_2/function?first=5&last=9&name=f%28%e2%82%AC%26%00+")).body);
  ASSERT_TRUE(function.ok());
  EXPECT_EQ(function->want, PageWant::kFunction);
  EXPECT_EQ(function->last_ns, 9u);
  EXPECT_EQ(function->function, std::string("f(\u20ac&\0+", 8));
  for (const char* name : {"", "name", "name=a&", "name=a&more=1", "name=%", "name=%2", "name=%2x",
                           "name=%-1", "name=% 1"}) {
    EXPECT_EQ(
        ask(get(std::string("/sessions/session_b/pid_2/function?first=5&last=9&") + name)).status,
        400)
        << name;
  }
  EXPECT_EQ(ask(get("/sessions/session_b/pid_2/record?thread=4294967296&record=0")).status, 400);
  EXPECT_EQ(ask(get("/sessions/session_c/pid_2/bars?first=5&last=9")).status, 404);
  EXPECT_EQ(ask(get("/sessions/session_b/pid_2/bars?first=5&last=9", false)).status, 403);
}

TEST_F(RoutesTest, OnlyASessionHasAPage) {
  for (const char* path :
       {"/sessions/", "/sessions/session_a", "/sessions/session_a/pid_1/",
        "/sessions/../session_a/pid_1", "/sessions/session_a/pid_2", "/sessions//etc",
        "/sessions/sessions/session_a/pid_1", "/sessions/session_a%2fpid_1", "/sessions"}) {
    EXPECT_EQ(ask(get(path)).status, 404) << path;
  }
}

}  // namespace
}  // namespace collect::web
