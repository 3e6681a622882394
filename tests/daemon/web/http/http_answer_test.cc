#include "daemon/web/http/http_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace collect::web {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(HttpAnswerTest, EveryAnswerForbidsWhatThePageDoesNotNeed) {
  HttpAnswer stream;
  stream.is_stream = true;
  for (const HttpAnswer& answer :
       {HttpAnswer(), json_answer("{}"), error_answer(404, "nothing"), stream}) {
    const std::string head = head_of(answer, false);
    for (const char* line :
         {"\r\nContent-Security-Policy: default-src 'none'; ", "frame-ancestors 'none'\r\n",
          "\r\nX-Frame-Options: DENY\r\n", "\r\nX-Content-Type-Options: nosniff\r\n",
          "\r\nReferrer-Policy: no-referrer\r\n",
          "\r\nCross-Origin-Resource-Policy: same-origin\r\n", "\r\nCache-Control: no-store"}) {
      EXPECT_THAT(head, HasSubstr(line));
    }
    EXPECT_THAT(head, Not(HasSubstr("unsafe")));
    EXPECT_THAT(head, Not(HasSubstr("Access-Control"))) << "no other origin may read anything";
    EXPECT_THAT(head, EndsWith("\r\n\r\n"));
  }
}

TEST(HttpAnswerTest, AnswerHasItsLengthAndAStreamHasNone) {
  HttpAnswer answer;
  answer.body = "12345";
  EXPECT_THAT(head_of(answer, false), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head_of(answer, false), HasSubstr("\r\nContent-Length: 5\r\n"));
  EXPECT_THAT(head_of(answer, false), Not(HasSubstr("Connection")));
  EXPECT_THAT(head_of(answer, true), HasSubstr("\r\nConnection: close\r\n\r\n"));
  answer.is_stream = true;
  EXPECT_THAT(head_of(answer, true), Not(HasSubstr("Content-Length")));
}

TEST(HttpAnswerTest, ErrorIsValidJsonForAnyText) {
  const HttpAnswer answer = error_answer(403, "no \"such\"\r\nthing \xff</script>");
  EXPECT_EQ(answer.status, 403);
  EXPECT_EQ(nlohmann::json::parse(answer.body)["error"],
            "no \"such\"\r\nthing \xef\xbf\xbd</script>");
}

TEST(HttpAnswerTest, CodesBecomeStatuses) {
  EXPECT_EQ(error_answer(Error{Code::kNotFound, ""}).status, 404);
  EXPECT_EQ(error_answer(Error{Code::kInvalidArgument, ""}).status, 400);
  EXPECT_EQ(error_answer(Error{Code::kUnsupported, ""}).status, 409);
  EXPECT_EQ(error_answer(Error{Code::kLimit, ""}).status, 503);
  EXPECT_EQ(error_answer(Error{Code::kDamaged, ""}).status, 500);
}

}  // namespace
}  // namespace collect::web
