// Files of ours before the pack's own checker, which was not written from this code.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
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

// Standard output of the checker; its exit code in `status`.
std::string run(const std::string& command, int& status) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  std::array<char, 4096> buffer;
  for (size_t got; (got = fread(buffer.data(), 1, buffer.size(), pipe)) != 0;) {
    out.append(buffer.data(), got);
  }
  const int raw = pclose(pipe);
  status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  return out;
}

class WrittenFiles : public ::testing::TestWithParam<Version> {
 protected:
  void SetUp() override {
    reference_ = testing::reference_folder();
    if (reference_.empty()) GTEST_SKIP() << "COLLECT_REFERENCE names no folder";
    int status = 0;
    run("python3 --version 2>/dev/null", status);
    if (status != 0) GTEST_SKIP() << "python3 is not there";
    folder_ = fs::path(::testing::TempDir()) / ("atf_written_" + std::to_string(getpid()) + "_" +
                                                std::to_string(static_cast<int>(GetParam())));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  json check(int& status) {
    const fs::path tool = reference_ / "tools" / "atf_check.py";
    const std::string command = "python3 '" + tool.string() + "' --json '" + folder_.string() + "'";
    const json summary = json::parse(run(command, status), nullptr, false);
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
