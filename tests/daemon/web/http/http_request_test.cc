// Requests as browsers and curl write them, and as no one should.
#include "daemon/web/http/http_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/web/limits.h"

namespace collect::web {
namespace {

using ::testing::HasSubstr;
using Step = HttpReader::Step;

// A POST of Firefox 115, with a body.
constexpr std::string_view kPost =
    "POST /api/stop?now HTTP/1.1\r\n"
    "Host: 127.0.0.1:7712\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:109.0) Gecko/20100101 Firefox/115.0\r\n"
    "Accept: */*\r\n"
    "Content-Type: application/json\r\n"
    "Content-Length: 15\r\n"
    "Origin: http://127.0.0.1:7712\r\n"
    "Connection: keep-alive\r\n"
    "Cookie: collectord_7712=abc\r\n"
    "Sec-Fetch-Site:same-origin\r\n"
    "X-Blanks: \t two words \t\r\n"
    "\r\n"
    "{\"session\":\"s\"}";

// What is read of `text`: its step, and the reader for the rest.
Step read(HttpReader& reader, std::string_view text) {
  return reader.push(text);
}

int status_of(std::string_view text) {
  HttpReader reader;
  return reader.push(text) == Step::kBad ? reader.status() : 0;
}

std::string with_head(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n";
}

TEST(HttpRequestTest, ReadsAPostOfABrowser) {
  HttpReader reader;
  std::string_view text = kPost;
  ASSERT_EQ(reader.push(text), Step::kDone) << reader.why();
  EXPECT_EQ(text, "");
  const HttpRequest request = reader.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/api/stop?now");
  EXPECT_EQ(request.path(), "/api/stop");
  EXPECT_EQ(request.body, "{\"session\":\"s\"}");
  EXPECT_TRUE(request.keeps_alive);
  ASSERT_NE(request.field("host"), nullptr);
  EXPECT_EQ(*request.field("host"), "127.0.0.1:7712");
  EXPECT_EQ(*request.field("sec-fetch-site"), "same-origin");
  EXPECT_EQ(*request.field("x-blanks"), "two words");
  EXPECT_EQ(request.field("Host"), nullptr) << "names are in lower case";
  EXPECT_EQ(request.fields.size(), 10u);
  EXPECT_TRUE(reader.is_empty());
}

// RFC 9112, 2.1, but for the version of its client.
TEST(HttpRequestTest, ReadsTheExampleOfTheSpecification) {
  HttpReader reader;
  ASSERT_EQ(read(reader,
                 "GET /hello.txt HTTP/1.1\r\nUser-Agent: curl/7.64.1\r\n"
                 "Host: www.example.com\r\nAccept-Language: en, mi\r\n\r\n"),
            Step::kDone);
  const HttpRequest request = reader.take();
  EXPECT_EQ(request.path(), "/hello.txt");
  EXPECT_EQ(*request.field("accept-language"), "en, mi");
}

TEST(HttpRequestTest, EveryPrefixWaitsForTheRest) {
  for (size_t bytes = 0; bytes < kPost.size(); ++bytes) {
    HttpReader reader;
    std::string_view first = kPost.substr(0, bytes);
    ASSERT_EQ(reader.push(first), Step::kMore) << bytes;
    EXPECT_EQ(first, "");
    EXPECT_EQ(reader.is_empty(), bytes == 0);
    std::string_view rest = kPost.substr(bytes);
    ASSERT_EQ(reader.push(rest), Step::kDone) << bytes;
    EXPECT_EQ(reader.take().body, "{\"session\":\"s\"}");
  }
}

// After any change of one byte the request is whole, refused or waits for more, and the same
// when it comes byte by byte. What is read keeps its limits.
TEST(HttpRequestTest, EveryChangedByteIsReadOrRefused) {
  size_t refused = 0;
  for (size_t at = 0; at < kPost.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string text(kPost);
      text[at] = static_cast<char>(value);
      HttpReader reader;
      std::string_view left = text;
      const Step step = reader.push(left);
      HttpReader slow;
      Step slow_step = Step::kMore;
      for (size_t i = 0; i < text.size() && slow_step == Step::kMore; ++i) {
        slow_step = read(slow, std::string_view(text).substr(i, 1));
      }
      ASSERT_EQ(step, slow_step) << at << " " << value;
      if (step == Step::kBad) {
        ++refused;
        ASSERT_GE(reader.status(), 400);
        ASSERT_EQ(reader.status(), slow.status());
        ASSERT_NE(reader.why(), "");
        std::string_view more = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        ASSERT_EQ(reader.push(more), Step::kBad) << "nothing is read after what is bad";
      } else if (step == Step::kDone) {
        const HttpRequest request = reader.take();
        ASSERT_TRUE(request.target.starts_with('/'));
        ASSERT_NE(request.field("host"), nullptr);
        ASSERT_LE(request.body.size(), kMaxBodyBytes);
      }
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(HttpRequestTest, RequestsComeOneAfterTheOther) {
  HttpReader reader;
  const std::string both = std::string(kPost) + "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\nGE";
  std::string_view text = both;
  ASSERT_EQ(reader.push(text), Step::kDone);
  EXPECT_EQ(reader.take().method, "POST");
  ASSERT_EQ(reader.push(text), Step::kDone);
  const HttpRequest second = reader.take();
  EXPECT_EQ(second.path(), "/next");
  EXPECT_EQ(second.body, "");
  EXPECT_EQ(second.fields.size(), 1u);
  EXPECT_EQ(reader.push(text), Step::kMore);
}

TEST(HttpRequestTest, ClientMayCloseTheConnection) {
  HttpReader reader;
  ASSERT_EQ(read(reader, with_head("Connection: Close\r\n")), Step::kDone);
  EXPECT_FALSE(reader.take().keeps_alive);
}

TEST(HttpRequestTest, EveryLimitPlusOneIsRefused) {
  const std::string begin = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ";
  const std::string end = "\r\n\r\n";
  const auto head_of = [&](size_t bytes) {
    return begin + std::string(bytes - begin.size() - end.size(), 'x') + end;
  };
  EXPECT_EQ(status_of(head_of(kMaxHeadBytes)), 0);
  EXPECT_EQ(status_of(head_of(kMaxHeadBytes + 1)), 431);
  EXPECT_EQ(status_of(std::string(kMaxHeadBytes, 'x')), 431) << "before it is whole";

  std::string fields;
  for (size_t i = 1; i < kMaxFields; ++i) fields += "X: y\r\n";
  EXPECT_EQ(status_of(with_head(fields)), 0);
  EXPECT_EQ(status_of(with_head(fields + "X: y\r\n")), 431);

  const auto get = [](size_t target_bytes) {
    return "GET /" + std::string(target_bytes - 1, 'x') + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  };
  EXPECT_EQ(status_of(get(kMaxTargetBytes)), 0);
  EXPECT_EQ(status_of(get(kMaxTargetBytes + 1)), 414);

  const auto length = [](uint64_t bytes) {
    return with_head("Content-Length: " + std::to_string(bytes) + "\r\n");
  };
  EXPECT_EQ(status_of(length(kMaxBodyBytes)), 0);
  EXPECT_EQ(status_of(length(kMaxBodyBytes + 1)), 413);
  EXPECT_EQ(status_of(length(UINT64_MAX)), 413);
  EXPECT_EQ(status_of(with_head("Content-Length: 18446744073709551616\r\n")), 413);
}

TEST(HttpRequestTest, RejectsAmbiguousRequests) {
  const struct {
    std::string text;
    int status;
  } cases[] = {
      {"GET / HTTP/1.1\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\n", 400},
      {"\r\nGET / HTTP/1.1\r\n", 400},
      {" GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n", 400},
      {"GET / / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET /\xc3\xa4 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400},
      {"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", 505},
      {"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n", 505},
      {"GET / http/1.1\r\nHost: localhost\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil\r\n\r\n", 400},
      {with_head("Host : x\r\n"), 400},
      {with_head("No colon\r\n"), 400},
      {with_head(": empty\r\n"), 400},
      {with_head("Folded: a\r\n b\r\n"), 400},
      {with_head("Transfer-Encoding: chunked\r\n"), 501},
      {with_head("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 501},
      {with_head("Content-Length: 3\r\nContent-Length: 4\r\n"), 400},
      {with_head("Content-Length: 3, 3\r\n"), 400},
      {with_head("Content-Length: +3\r\n"), 400},
      {with_head("Content-Length: -1\r\n"), 400},
      {with_head("Content-Length: 0x10\r\n"), 400},
      {with_head("Content-Length:\r\n"), 400},
      {with_head("Cookie: a=b\r\nCookie: c=d\r\n"), 400},
      {with_head("Origin: a\r\nOrigin: b\r\n"), 400},
      {with_head("Expect: 100-continue\r\n"), 417},
      {std::string("\x16\x03\x01\x02\x00\x01", 6), 400},  // TLS
      {std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 400},
      {with_head("Nul: " + std::string(1, '\0') + "\r\n"), 400},
  };
  for (const auto& one : cases) EXPECT_EQ(status_of(one.text), one.status) << one.text;
}

TEST(HttpRequestTest, ReasonNamesTheLimit) {
  HttpReader reader;
  EXPECT_EQ(read(reader, with_head("Content-Length: 99999\r\n")), Step::kBad);
  EXPECT_THAT(reader.why(), HasSubstr(std::to_string(kMaxBodyBytes)));
}

}  // namespace
}  // namespace collect::web
