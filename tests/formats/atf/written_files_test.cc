// Files of ours before the pack's own checker, which was not written from this code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

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
    reference_ = testing::reference_folder();
    if (reference_.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
    if (!testing::has_python()) GTEST_SKIP() << "python3 is not there";
    checker_.emplace(reference_ / "tools" / "atf_check.py");
    folder_ = fs::path(::testing::TempDir()) / ("atf_written_" + std::to_string(getpid()) + "_" +
                                                std::to_string(static_cast<int>(GetParam())));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  json check(int& status) {
    const testing::Ran ran = checker_->run({"--json", folder_.string()});
    status = ran.status;
    const json summary = json::parse(ran.out, nullptr, false);
    EXPECT_FALSE(summary.is_discarded());
    return summary;
  }
  void write(const ThreadPlan& plan, int n) {
    const auto made = build_thread(plan);
    const fs::path thread = folder_ / ("thread_" + std::to_string(n));
    testing::write_file(thread / "index.atf", made.index);
    if (!made.detail.empty()) testing::write_file(thread / "detail.atf", made.detail);
  }

  fs::path reference_;
  fs::path folder_;
  std::optional<testing::PythonTool> checker_;
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
  int status = -1;
  const json summary = check(status);
  EXPECT_EQ(status, 0) << summary.dump(1);
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

TEST_P(WrittenFiles, UnfinalizedOnesAreRecovered) {
  ThreadPlan plan;
  plan.version = GetParam();
  plan.detail_every = 3;
  plan.finalize = false;
  write(plan, 0);
  int status = -1;
  const json summary = check(status);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(summary["result"], "recovered") << summary.dump(1);
}

}  // namespace
}  // namespace collect::atf
