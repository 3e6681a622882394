// Statements as they travel, and what comes of the server's answers.
// tests/e2e/sessions/warehouse_test.py does the same with a real server.
#include "daemon/warehouse/clickhouse_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "daemon/upload/s3/digests.h"
#include "tests/daemon/upload/server_program.h"

namespace collect::warehouse {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using upload::bytes_of;

class NoPauses final : public upload::Pauses {
 public:
  bool pause(uint64_t) override { return true; }
};

class ClickHouseClientTest : public testing::Test {
 protected:
  // The answers that the server gives, one after another.
  ClickHouseClient& client(const json& answers) {
    server_.emplace(std::vector<std::string>{"-B", SCRIPTED_SERVER, answers.dump()});
    ClickHouseSettings settings;
    settings.url = "http://127.0.0.1:" + server_->line();
    settings.database = "d b";
    settings.user = "me";
    settings.password = "secret";
    settings.retry.attempts = 3;
    client_.emplace(settings, pauses_, [this](const Error&) { ++remarks_; });
    return *client_;
  }
  json requests() {
    upload::HttpConnection http({});
    upload::HttpRequest request{"GET", "http://127.0.0.1:" + server_->line() + "/"};
    request.most_answer_bytes = 1 << 20;
    const auto answer = http.perform(request);
    return answer.ok() ? json::parse(answer->body) : json();
  }

  NoPauses pauses_;
  std::optional<upload::test::ServerProgram> server_;
  std::optional<ClickHouseClient> client_;
  int remarks_ = 0;
};

TEST_F(ClickHouseClientTest, InsertsRowsAsTheyAre) {
  EXPECT_TRUE(client(json::array({json::array({200, ""})}))
                  .insert("parts", "a, b", bytes_of("\x01\x02"))
                  .ok());
  const json seen = requests();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0][0],
            "/?database=d%20b&query=INSERT%20INTO%20parts%20%28a%2C%20b%29%20FORMAT%20RowBinary");
  EXPECT_EQ(seen[0][1]["x-clickhouse-user"], "me");
  EXPECT_EQ(seen[0][1]["x-clickhouse-key"], "secret");
  EXPECT_EQ(seen[0][2], "0102");
}

TEST_F(ClickHouseClientTest, SendsSelectedRowsAsATableOfTheRequest) {
  EXPECT_TRUE(client(json::array({json::array({200, ""})}))
                  .insert_selected("events", "s, n", "'x', n", "n UInt8", bytes_of("\x07"))
                  .ok());
  const json seen = requests();
  const std::string path = seen[0][0];
  EXPECT_THAT(path, HasSubstr("SELECT%20%27x%27%2C%20n%20FROM%20sent"));
  EXPECT_THAT(path, HasSubstr("&sent_format=RowBinary&sent_structure=n%20UInt8"));
  const std::string type = seen[0][1]["content-type"];
  const std::string boundary = type.substr(type.find("boundary=") + 9);
  std::string body;
  const std::string hex = seen[0][2];
  for (size_t i = 0; i < hex.size(); i += 2) {
    body += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  EXPECT_EQ(body, "--" + boundary +
                      "\r\nContent-Disposition: form-data; name=\"sent\"; filename=\"sent\"\r\n"
                      "Content-Type: application/octet-stream\r\n\r\n\x07\r\n--" +
                      boundary + "--\r\n");
}

TEST_F(ClickHouseClientTest, TriesAgainWhatMayPass) {
  EXPECT_TRUE(client(json::array({json::array({500, "Code: 252. DB::Exception: Too many parts"}),
                                  json::array({503, ""}), json::array({200, ""})}))
                  .insert("t", "a", bytes_of("x"))
                  .ok());
  EXPECT_EQ(remarks_, 2);
  EXPECT_EQ(requests().size(), 3u);
}

TEST_F(ClickHouseClientTest, GivesUpAfterItsAttempts) {
  const Status status = client(json::array({json::array({503, ""})})).insert("t", "a", {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(requests().size(), 3u);
  EXPECT_TRUE(client_->last_failed());
}

TEST_F(ClickHouseClientTest, DoesNotRepeatWhatTheServerRefuses) {
  const Status status =
      client(json::array({json::array({500, "Code: 62. DB::Exception: Syntax error"})}))
          .insert("t", "a", {});
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_THAT(status.error().message, HasSubstr("Syntax error"));
  EXPECT_EQ(requests().size(), 1u);
}

TEST_F(ClickHouseClientTest, ErrorBehindA200IsOne) {
  const Status status =
      client(json::array({json::array({200, "Code: 60. DB::Exception: no table"})}))
          .insert("t", "a", {});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.code(), Code::kNotFound);
}

TEST_F(ClickHouseClientTest, AsksForRows) {
  const auto rows =
      client(json::array({json::array({200, "a\\tb\t1\nc\\\\\\n\t\n"})})).ask("SELECT 1");
  ASSERT_TRUE(rows.ok()) << to_string(rows.error());
  EXPECT_EQ(*rows, (std::vector<std::vector<std::string>>{{"a\tb", "1"}, {"c\\\n", ""}}));
}

// No ClickHouse server, or a false one: its answers have bounds, and any number of fields.
TEST_F(ClickHouseClientTest, AnswersOfAnyShapeAndLength) {
  const auto large = [](int status) {
    return json::array({json::array({status, json::array({std::string(1 << 10, 'x'), 17 << 10})})});
  };
  const auto rows = client(large(200)).ask("SELECT 1");
  EXPECT_EQ(rows.code(), Code::kLimit);
  const Status refused = client(large(500)).insert("t", "a", {});
  EXPECT_EQ(refused.code(), Code::kLimit);
  EXPECT_LT(refused.error().message.size(), 3000u);
  for (const char* answer : {"", "\n", "\t\t\t\n\n", "\\", "one", "\\0\t\xff"}) {
    EXPECT_TRUE(client(json::parse(json::array({json::array({200, answer})})
                                       .dump(-1, ' ', false, json::error_handler_t::replace)))
                    .ask("SELECT 1")
                    .ok())
        << answer;
  }
}

TEST_F(ClickHouseClientTest, WritesTheAnswerButNoErrorToTheSink) {
  VectorSink sink;
  EXPECT_TRUE(client(json::array({json::array({200, "1\n"})})).query("SELECT 1", "CSV", sink).ok());
  EXPECT_EQ(upload::text_of(sink.bytes()), "1\n");
  EXPECT_THAT(std::string(requests()[0][0]), HasSubstr("default_format=CSV"));
  VectorSink none;
  const Status status =
      client(json::array({json::array({404, "Code: 60. DB::Exception: no table"})}))
          .query("SELECT 1", "CSV", none);
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_THAT(status.error().message, HasSubstr("schema.sql"));
  EXPECT_TRUE(none.bytes().empty());
}

TEST(ServerErrorTest, CodesSayWhatToDo) {
  // 18.16's words, and those of later servers.
  EXPECT_EQ(
      server_error(500, "Code: 60, e.displayText() = DB::Exception: Table d.t doesn't exist.").code,
      Code::kNotFound);
  EXPECT_EQ(server_error(401, "Code: 193, e.displayText() = DB::Exception: Wrong password").code,
            Code::kPermission);
  EXPECT_EQ(server_error(403, "Code: 516. DB::Exception: me: Authentication failed").code,
            Code::kPermission);
  EXPECT_EQ(server_error(500, "Code: 241. DB::Exception: Memory limit (total) exceeded").code,
            Code::kUnavailable);
  EXPECT_EQ(server_error(500, "Code: 999. Coordination::Exception: Session expired").code,
            Code::kUnavailable);
  EXPECT_EQ(server_error(400, "Code: 62. DB::Exception: Syntax error").code,
            Code::kInvalidArgument);
  EXPECT_EQ(server_error(502, "<html>Bad Gateway</html>").code, Code::kUnavailable);
  EXPECT_EQ(server_error(403, "").code, Code::kPermission);
  EXPECT_EQ(server_error(500, std::string(1 << 20, 'x')).message.size() < 3000, true);
}

TEST(ClickHouseSettingsTest, TakesAnAddressAndNoMore) {
  EXPECT_EQ(clickhouse_settings("http://127.0.0.1:8123/", "d")->url, "http://127.0.0.1:8123");
  EXPECT_TRUE(clickhouse_settings("https://[::1]:8443", "d").ok());
  for (const char* wrong : {"", "host:8123", "ftp://host", "http://", "http://host/path",
                            "http://host?x=1", "http://me:secret@host"}) {
    const auto settings = clickhouse_settings(wrong, "d");
    EXPECT_EQ(settings.ok(), false) << wrong;
    if (settings.ok()) continue;
    EXPECT_EQ(settings.error().message.find("secret"), std::string::npos) << "it is not shown";
  }
}

TEST(SqlTextTest, EscapesQuotesAndBackslashes) {
  EXPECT_EQ(sql_text("it's"), "'it\\'s'");
  EXPECT_EQ(sql_text("\\'"), "'\\\\\\''");
}

}  // namespace
}  // namespace collect::warehouse
