#include "daemon/fleet/database.h"

#include <gmock/gmock.h>

#include "tests/daemon/fleet/postgres.h"

namespace collect::fleet {
namespace {

using test::postgres;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DatabaseUrlTest, TakesUrlsWithoutAPassword) {
  for (const char* url :
       {"postgresql://db/fleet", "postgres://collect@db:5432/fleet?sslmode=verify-full",
        "postgresql:///fleet?host=/run/postgresql", "postgresql://a,b:1/fleet?passfile=/x",
        "postgresql://[2001:db8::1]:5432/fleet"}) {
    EXPECT_EQ(database_url_fault(url), "") << url;
  }
}

TEST(DatabaseUrlTest, RefusesOthersAndPasswords) {
  for (const char* url : {"", "fleet", "host=db dbname=fleet", "http://db/fleet", "://"}) {
    EXPECT_THAT(database_url_fault(url), HasSubstr("postgresql://")) << url;
  }
  for (const char* url :
       {"postgresql://me:secret@db/fleet", "postgres://me:@db", "postgresql://me:se@cret@db/fleet",
        "postgresql://db/fleet?password=secret", "postgresql://db?sslmode=prefer&password=x"}) {
    EXPECT_THAT(database_url_fault(url), HasSubstr("passfile")) << url;
  }
}

TEST(DatabaseConnectTest, SaysWhyNobodyIsThere) {
  // Port 1 of loopback: nobody listens there, and nobody else may.
  const auto database = Database::connect("postgresql://x@127.0.0.1:1/fleet");
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.code(), Code::kUnavailable);
  EXPECT_THAT(database.error().message, HasSubstr("127.0.0.1"));
}

class DatabaseTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!postgres().missing().empty()) GTEST_SKIP() << postgres().missing();
  }
};

TEST_F(DatabaseTest, SaysWhyItDoesNotLetUsIn) {
  const auto database =
      Database::connect("postgresql://stranger@127.0.0.1:" + postgres().port() + "/fleet");
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.code(), Code::kUnavailable);
  EXPECT_THAT(database.error().message, HasSubstr("password"));
}

TEST_F(DatabaseTest, ParametersAreValuesWhateverIsInThem) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok()) << database.error().message;
  for (const std::string text :
       {"'; DROP TABLE x; --", "$1", "\\'", "\"", "{a,\"b\"}", "caf\xc3\xa9 \xf0\x9f\x93\xb1"}) {
    const auto rows = database->run("SELECT $1::text, length($1::text)", {text}, 2);
    ASSERT_TRUE(rows.ok()) << rows.error().message;
    EXPECT_EQ(rows->at(0).at(0), text);
  }
  const auto rows = database->run("SELECT NULL, 'x' FROM generate_series(1, 3)", {}, 2);
  ASSERT_TRUE(rows.ok());
  EXPECT_THAT(*rows,
              ElementsAre(Row{std::nullopt, "x"}, Row{std::nullopt, "x"}, Row{std::nullopt, "x"}));
}

TEST_F(DatabaseTest, AnErrorHasTheServersWordsAndNothingIsLeftBehind) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok());
  const auto wrong = database->run("SELECT nonsense", {}, 1);
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.code(), Code::kUnavailable);
  EXPECT_THAT(wrong.error().message, HasSubstr("nonsense"));
  EXPECT_EQ(wrong.error().message.find('\n'), std::string::npos);
  EXPECT_TRUE(database->run("SELECT 1", {}, 1).ok());
}

TEST_F(DatabaseTest, RefusesMoreRowsThanItsLimit) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok());
  const std::string most = std::to_string(kMaxRows);
  EXPECT_TRUE(database->run("SELECT generate_series(1, $1::int)", {most}, 1).ok());
  const auto more = database->run("SELECT generate_series(0, $1::int)", {most}, 1);
  ASSERT_FALSE(more.ok());
  EXPECT_THAT(more.error().message, HasSubstr("more rows than " + most));
}

// What is beyond a limit is dropped as it comes, and does not lie in memory until the answer's end.
TEST_F(DatabaseTest, AnswersOfAnyShapeAreRefused) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok());
  const auto refused = [&](const char* statement, size_t columns) {
    const auto rows = database->run(statement, {}, columns);
    EXPECT_FALSE(rows.ok()) << statement;
    EXPECT_TRUE(database->run("SELECT 1", {}, 1).ok()) << "it goes on";
    return rows.ok() ? std::string() : rows.error().message;
  };
  EXPECT_THAT(refused("SELECT 1, 2", 1), HasSubstr("2 columns and not with 1"));
  EXPECT_THAT(refused("SELECT 1", 11), HasSubstr("1 columns and not with 11"));
  EXPECT_THAT(refused("SELECT", 1), HasSubstr("0 columns and not with 1"));
  EXPECT_THAT(refused("SELECT 1", 0), HasSubstr("1 columns and not with 0"));
  EXPECT_THAT(refused("SELECT repeat('x', 1 << 20) FROM generate_series(0, 64)", 1),
              HasSubstr("rows of more than"));
  const auto none = database->run("SELECT 1 WHERE false", {}, 1);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
}

TEST_F(DatabaseTest, AServerThatHangsIsNotWaitedForLongerThanTheLimit) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok());
  postgres().freeze();
  const auto hung = database->run("SELECT 1", {}, 1);
  const auto connected = Database::connect(postgres().url());
  postgres().thaw();
  ASSERT_FALSE(hung.ok());
  EXPECT_THAT(hung.error().message, HasSubstr("did not answer within 5 s"));
  ASSERT_FALSE(connected.ok());
  EXPECT_THAT(connected.error().message, HasSubstr("did not answer within 5 s"));
}

TEST_F(DatabaseTest, TheServerEndsAStatementThatTakesTooLong) {
  auto database = Database::connect(postgres().url());
  ASSERT_TRUE(database.ok());
  const auto rows = database->run("SHOW statement_timeout", {}, 1);
  ASSERT_TRUE(rows.ok());
  EXPECT_EQ(rows->at(0).at(0), std::to_string(kDatabaseLimit.count()) + "s");
}

}  // namespace
}  // namespace collect::fleet
