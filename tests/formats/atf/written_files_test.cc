// Files of ours before checkers that were not written from this code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/formats/atf/built_thread.h"
#include "tests/formats/atf/reference_files.h"
#include "tests/formats/atf/version_name.h"

namespace collect::atf {
namespace {

using nlohmann::json;
using testing::build_thread;
using testing::ThreadPlan;
namespace fs = std::filesystem;

class WrittenFiles : public ::testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
    folder_ = fs::path(::testing::TempDir()) / ("atf_written_" + std::to_string(getpid()) + "_" +
                                                std::to_string(static_cast<int>(GetParam())));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  // What each checker finds, with "status", its exit code.
  std::vector<json> checked() {
    std::vector<json> all;
    for (testing::PythonTool& checker : checkers_) {
      const testing::Ran ran = checker.run({"--json", folder_.string()});
      all.push_back(json::parse(ran.out, nullptr, false));
      EXPECT_FALSE(all.back().is_discarded());
      all.back()["status"] = ran.status;
    }
    EXPECT_GE(all.size(), 1u);
    return all;
  }
  void write(const ThreadPlan& plan, int n) {
    const auto made = build_thread(plan);
    const fs::path thread = folder_ / ("thread_" + std::to_string(n));
    testing::write_file(thread / "index.atf", made.index);
    if (!made.detail.empty()) testing::write_file(thread / "detail.atf", made.detail);
  }

  fs::path folder_;
  reference::PythonTools checkers_ =
      reference::python_tools(testing::independent_programs("check_atf.py", "atf_check.py"));
};

INSTANTIATE_TEST_SUITE_P(Atf, WrittenFiles, ::testing::Values(Version::kV1, Version::kV2),
                         testing::version_name);

TEST_P(WrittenFiles, PassTheIndependentChecker) {
  ThreadPlan plan;
  plan.version = GetParam();
  plan.events = 100;
  plan.detail_every = 3;
  write(plan, 0);
  plan.thread_id = 99;
  plan.detail_every = 0;
  write(plan, 1);
  for (const json& summary : checked()) {
    EXPECT_EQ(summary["status"], 0) << summary.dump(1);
    EXPECT_EQ(summary["result"], "ok") << summary.dump(1);
    EXPECT_EQ(summary["events"], 200);
    const json& first = summary["threads"][0];
    EXPECT_EQ(first["errors"].size() + first["warnings"].size(), 0u) << first.dump(1);
    EXPECT_EQ(first["version"], static_cast<int>(GetParam()));
    EXPECT_EQ(first["thread_id"], 4711);
    EXPECT_EQ(first["crc"], "ok");
    EXPECT_EQ(first["detail"]["crc"], "ok");
    EXPECT_EQ(first["detail"]["events"], 34);
  }
}

TEST_P(WrittenFiles, UnfinalizedOnesAreRecovered) {
  ThreadPlan plan;
  plan.version = GetParam();
  plan.detail_every = 3;
  plan.finalize = false;
  write(plan, 0);
  for (const json& summary : checked()) {
    EXPECT_EQ(summary["status"], 0);
    EXPECT_EQ(summary["result"], "recovered") << summary.dump(1);
  }
}

}  // namespace
}  // namespace collect::atf
