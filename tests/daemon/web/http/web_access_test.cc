#include "daemon/web/http/web_access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace collect::web {
namespace {

using ::testing::HasSubstr;

HttpRequest request(const std::string& method, const std::string& path,
                    std::vector<std::pair<std::string, std::string>> fields) {
  HttpRequest made;
  made.method = method;
  made.target = path;
  made.fields = std::move(fields);
  return made;
}

class WebAccessTest : public ::testing::Test {
 protected:
  int refused(const HttpRequest& request) const {
    const auto answer = access_.refusal(request);
    return answer ? answer->status : 0;
  }
  int refused_host(const std::string& host) const {
    return refused(request("GET", "/", {{"host", host}}));
  }
  int refused_post(const std::string& host, const std::string& origin) const {
    return refused(request("POST", "/api/stop", {{"host", host}, {"origin", origin}}));
  }
  bool has_cookie(const std::string& cookies) const {
    return access_.is_signed_in(request("GET", "/", {{"host", "localhost"}, {"cookie", cookies}}));
  }

  const WebAccess access_{{"the token", "the cookie"}, "127.0.0.1", 7712};
};

TEST_F(WebAccessTest, AddressHasTheTokenInItsFragment) {
  EXPECT_EQ(access_.url(), "http://127.0.0.1:7712/#token=the token");
  EXPECT_EQ(WebAccess({"t", "c"}, "::1", 80).url(), "http://[::1]:80/#token=t");
}

TEST_F(WebAccessTest, HostIsANameOfThisMachinesLoopback) {
  for (const char* host : {"127.0.0.1:7712", "127.0.0.1", "localhost:7712", "LocalHost:7712",
                           "[::1]:7712", "127.3.2.1:1", "localhost"}) {
    EXPECT_EQ(refused_host(host), 0) << host;
  }
  for (const char* host : {"evil.example:7712",
                           "evil.example",
                           "localhost.evil.example:7712",
                           "127.0.0.1.evil.example",
                           "localhost.",
                           "128.0.0.1",
                           "10.0.0.1:7712",
                           "127.1",
                           "2130706433",
                           "0x7f.0.0.1",
                           "0.0.0.0",
                           "[::]:7712",
                           "[::ffff:127.0.0.1]",
                           "::1",
                           "",
                           ":7712",
                           "127.0.0.1:",
                           "127.0.0.1:port",
                           "127.0.0.1:7712:7712",
                           "127.0.0.1:77120000",
                           "localhost@evil",
                           "localhost evil",
                           "[::1"}) {
    EXPECT_EQ(refused_host(host), 421) << host;
  }
  EXPECT_EQ(refused(request("GET", "/", {})), 421);
}

TEST_F(WebAccessTest, BoundAddressIsAHostToo) {
  const WebAccess bound({"t", "c"}, "::1", 7712);
  EXPECT_FALSE(bound.refusal(request("GET", "/", {{"host", "[::1]:7712"}})).has_value());
}

TEST_F(WebAccessTest, PostNeedsTheOriginOfItsHost) {
  EXPECT_EQ(refused_post("127.0.0.1:7712", "http://127.0.0.1:7712"), 0);
  EXPECT_EQ(refused_post("localhost:7712", "http://localhost:7712"), 0);
  // Through ssh -L with another port of this side.
  EXPECT_EQ(refused_post("localhost:9000", "http://localhost:9000"), 0);
  for (const char* origin :
       {"http://evil.example", "https://127.0.0.1:7712", "http://127.0.0.1:7713", "null", "",
        "http://127.0.0.1:7712/", "http://127.0.0.1", "127.0.0.1:7712", "http://localhost:7712"}) {
    EXPECT_EQ(refused_post("127.0.0.1:7712", origin), 403) << origin;
  }
  EXPECT_EQ(refused(request("POST", "/api/stop", {{"host", "localhost"}})), 403);
  EXPECT_EQ(refused(request("DELETE", "/", {{"host", "localhost"}})), 403);
  // The name that a rebinding page has is refused as a host, with any origin.
  EXPECT_EQ(refused_post("evil.example:7712", "http://evil.example:7712"), 421);
}

TEST_F(WebAccessTest, AnotherOriginMayOnlyLoadTheLivePage) {
  const auto from = [&](const std::string& path, const std::string& site) {
    return refused(request("GET", path, {{"host", "localhost"}, {"sec-fetch-site", site}}));
  };
  for (const char* site : {"same-origin", "none"}) {
    EXPECT_EQ(from("/", site), 0);
    EXPECT_EQ(from("/api/state", site), 0);
  }
  // Another port of this machine is the same site, and gets the cookie sent.
  for (const char* site : {"same-site", "cross-site", "?"}) {
    EXPECT_EQ(from("/", site), 0);
    EXPECT_EQ(from("/api/state", site), 403);
    EXPECT_EQ(from("/sessions/a/pid_1", site), 403);
  }
}

TEST_F(WebAccessTest, TokenIsExchangedForACookie) {
  const HttpAnswer answer = access_.sign_in("the token");
  EXPECT_EQ(answer.status, 200);
  ASSERT_EQ(answer.fields.size(), 1u);
  EXPECT_EQ(answer.fields[0].first, "Set-Cookie");
  EXPECT_EQ(answer.fields[0].second,
            "collectord_7712=the cookie; Path=/; HttpOnly; SameSite=Strict");
  for (const char* token : {"", "the toke", "the tokens", "the tokem", "the cookie"}) {
    const HttpAnswer refused = access_.sign_in(token);
    EXPECT_EQ(refused.status, 403) << token;
    EXPECT_TRUE(refused.fields.empty());
  }
}

TEST_F(WebAccessTest, CookieSignsIn) {
  EXPECT_TRUE(has_cookie("collectord_7712=the cookie"));
  EXPECT_TRUE(has_cookie("a=b; collectord_7712=the cookie; c=d"));
  EXPECT_TRUE(has_cookie("collectord_7712=old; collectord_7712=the cookie"));
  for (const char* cookies :
       {"", "collectord_7712=", "collectord_7712=the cooki", "collectord_7712=the cookies",
        "collectord_7713=the cookie", "xcollectord_7712=the cookie", "collectord_7712",
        "collectord_7712=the token", ";;;", "=", "collectord_7712==the cookie"}) {
    EXPECT_FALSE(has_cookie(cookies)) << cookies;
  }
  EXPECT_FALSE(access_.is_signed_in(request("GET", "/", {{"host", "localhost"}})));
}

TEST_F(WebAccessTest, SecretsAreLongAndDiffer) {
  const auto first = WebSecrets::make();
  const auto second = WebSecrets::make();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->token.size(), 64u);
  EXPECT_EQ(first->token.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(first->token, first->cookie);
  EXPECT_NE(first->token, second->token);
  EXPECT_NE(first->cookie, second->cookie);
}

}  // namespace
}  // namespace collect::web
