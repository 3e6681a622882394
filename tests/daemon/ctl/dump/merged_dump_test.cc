#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "daemon/ctl/dump/dump.h"
#include "tests/daemon/ctl/check/session.h"

namespace collect::ctl {
namespace {

using nlohmann::json;
using testing::index_of;
using testing::kCall;
using testing::kReturn;

constexpr uint64_t kEpoch = 1'800'000'000'000'000'000;  // the collector's boot, as time of day

class MergedDump : public testing::OfflineTest {
 protected:
  // A session whose device is `offset_ns` ahead of the collector.
  std::string write_session(const std::string& pid, const std::vector<testing::Step>& steps,
                            int64_t offset_ns, const std::string& device) {
    session_ = root_ / "session_20250102_030405" / pid;
    write_thread(0, index_of(steps, 1));
    write_text(session_ / "manifest.json",
               R"({"threads":[{"id":0,"name":"main"}],"process":{"name":"app","device_model":")" +
                   device + R"("},"symbols":[{"function_id":"0x10","name":"work"}],)" +
                   R"("clock_sync":[{"at_ns":1000,"offset_ns":)" + std::to_string(offset_ns) +
                   R"(,"uncertainty_ns":25000,"at_unix_ns":)" + std::to_string(kEpoch + 1000) +
                   R"(,"boot_id":"b"}]})");
    return session_.string();
  }
};

TEST_F(MergedDump, TwoDevicesAlternateOnTheCollectorsClock) {
  const std::string phone = write_session(
      "pid_1", {{5'001'000, kCall, 0x10}, {5'003'000, kReturn, 0x10}}, 5'000'000, "Phone");
  const std::string server =
      write_session("pid_2", {{2'000, kCall, 0x10}, {4'000, kReturn, 0x10}}, 0, "Server");
  DumpOptions options;
  options.paths = {phone, server};
  options.merged = true;
  ASSERT_EQ(dump(options, out_, err_), 0) << err_.str();
  EXPECT_EQ(out_.str(),
            "# session 1: " + phone +
                ", app on Phone; 1 comparison with the collector's clock, the best within 25 us\n" +
                "# session 2: " + server +
                ", app on Server; 1 comparison with the collector's clock, the best within 25 us\n"
                "# microseconds since 2027-01-15 08:00:00.000001000 UTC, collector's clock; "
                "duration at each return\n"
                "         0.000             [1:  0] | work() {\n"
                "         1.000             [2:  0] | work() {\n"
                "         2.000       2.000 [1:  0] | } work\n"
                "         3.000       2.000 [2:  0] | } work\n");

  options.json = true;
  options.when.from = std::to_string(kEpoch + 2'000);
  options.when.until = std::to_string(kEpoch + 3'000);
  out_.str("");
  ASSERT_EQ(dump(options, out_, err_), 0);
  std::istringstream lines(out_.str());
  std::string first, second, third;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_FALSE(std::getline(lines, third));
  EXPECT_EQ(json::parse(first)["session"], server);
  EXPECT_EQ(json::parse(first)["ts_ns"], 2'000);
  EXPECT_EQ(json::parse(second)["session"], phone);
  EXPECT_EQ(json::parse(second)["ts_ns"], 5'003'000);
  EXPECT_EQ(json::parse(second)["time_ns"], kEpoch + 3'000);
  EXPECT_GE(json::parse(second)["uncertainty_ns"], 25'000);
  // The same since the earliest start, which is the phone's.
  const std::string by_numbers = out_.str();
  options.when.from = "1us";
  options.when.until = "2us";
  out_.str("");
  ASSERT_EQ(dump(options, out_, err_), 0);
  EXPECT_EQ(out_.str(), by_numbers);
}

TEST_F(MergedDump, SeveralWithoutMergingComeOneAfterAnother) {
  const std::string one = write_session("pid_1", {{10, kCall, 0x10}}, 0, "");
  const std::string two = write_session("pid_2", {{5, kCall, 0x10}}, 0, "");
  DumpOptions options;
  options.paths = {one, two};
  options.json = true;
  ASSERT_EQ(dump(options, out_, err_), 0) << err_.str();
  std::istringstream lines(out_.str());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line)["ts_ns"], 10);
  EXPECT_FALSE(json::parse(line).contains("time_ns"));
}

TEST_F(MergedDump, SessionThatCannotBePlacedIsNamed) {
  const std::string one = write_session("pid_1", {{10, kCall, 0x10}}, 0, "");
  const std::string two = write_session("pid_2", {{5, kCall, 0x10}}, 0, "");
  write_text(std::filesystem::path(two) / "manifest.json", R"({"threads":[{"id":0}]})");
  DumpOptions options;
  options.paths = {one, two};
  options.merged = true;
  EXPECT_EQ(dump(options, out_, err_), 2);
  EXPECT_NE(err_.str().find(two), std::string::npos) << err_.str();
  EXPECT_NE(err_.str().find("compared"), std::string::npos);
}

}  // namespace
}  // namespace collect::ctl
