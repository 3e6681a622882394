// What collect-store is asked for and what it reports, and back.
#include "daemon/upload/store_request.h"

#include <gtest/gtest.h>

#include "daemon/upload/upload_status.h"

namespace collect::upload {
namespace {

TEST(StoreRequest, ComesBackFromItsArguments) {
  StoreRequest request;
  request.want = StoreWant::kVerify;
  request.location = {"s3://traces/v1/a=b", "https://store.lab:9000", "eu-south-7",
                      123'456'789'012};
  request.paths = {"a b", "", "not UTF-8: \xff", "path=path"};
  request.output = "out=put";
  request.keep_local = "14 days";
  request.tables = "all";
  request.json = request.strict = request.allow_incomplete = true;
  request.columns = 80;
  const auto read = StoreRequest::parse(request.to_arguments());
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->to_arguments(), request.to_arguments());
  EXPECT_EQ(read->want, request.want);
  EXPECT_EQ(read->location.max_bytes_per_s, 123'456'789'012u);
  EXPECT_EQ(read->paths, request.paths);
  EXPECT_TRUE(read->json);
  EXPECT_FALSE(read->progress);
}

TEST(StoreRequest, RefusesOtherArguments) {
  for (const char* argument : {"", "=", "want", "want=", "want=5", "want=-1", "columns=x",
                               "colour=1", "max_bytes_per_s=1e9", "--help"}) {
    EXPECT_EQ(StoreRequest::parse({argument}).code(), Code::kInvalidArgument) << argument;
  }
}

TEST(StoreRequest, UrlsNameABucket) {
  EXPECT_EQ(parse_store_url("s3://traces")->bucket, "traces");
  EXPECT_EQ(parse_store_url("s3://traces")->below, "");
  EXPECT_EQ(parse_store_url("s3://traces/")->below, "");
  EXPECT_EQ(parse_store_url("s3://traces/v1/5c/")->below, "v1/5c/");
  for (const char* url : {"", "traces", "s3:traces", "s3://", "s3:///v1", "https://traces"}) {
    EXPECT_EQ(parse_store_url(url).code(), Code::kInvalidArgument) << url;
  }
}

TEST(StoreRequest, HowLongToKeep) {
  EXPECT_EQ(parse_keep_local("always")->until, KeepUntil::kAlways);
  EXPECT_EQ(parse_keep_local("until_committed")->until, KeepUntil::kCommitted);
  for (const char* words : {"14d", "14 days"}) {
    EXPECT_EQ(parse_keep_local(words)->until, KeepUntil::kDays);
    EXPECT_EQ(parse_keep_local(words)->days, 14u);
  }
  EXPECT_EQ(parse_keep_local("1 day")->days, 1u);
  for (const char* words : {"", "14", "d", "-1d", "14 weeks", "99999999999d", "99999d", "never"}) {
    EXPECT_EQ(parse_keep_local(words).code(), Code::kInvalidArgument) << words;
  }
}

TEST(StoreReport, ComesBackFromItsLine) {
  StoreReport report;
  report.status.pending_sessions = 3;
  report.status.pending_bytes = uint64_t{1} << 60;
  report.status.retries = {{0, 7}, {503, 9}};
  report.status.problem = "says \"no\"\nand \xff";
  report.status.clock_correction_s = -90;
  const std::string line = report.to_line();
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto read = StoreReport::parse(line);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->to_line(), line);
  EXPECT_EQ(read->status.pending_bytes, uint64_t{1} << 60);
  EXPECT_EQ(read->status.retries, report.status.retries);
  EXPECT_EQ(read->status.clock_correction_s, -90);
  EXPECT_EQ(read->remove, "");

  EXPECT_EQ(StoreReport::parse(StoreReport{{}, "session_1/pid_2"}.to_line())->remove,
            "session_1/pid_2");
  for (const char* text : {"", "{}", "[]", "7", "{\"remove\":7}", "{\"pending_sessions\":1}"}) {
    EXPECT_EQ(StoreReport::parse(text).code(), Code::kDamaged) << text;
  }
}

}  // namespace
}  // namespace collect::upload
