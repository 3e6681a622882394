// Ctrl-C in a conversion leaves nothing behind.
#include <gtest/gtest.h>
#include <csignal>

#include <set>

#include "tests/daemon/ctl/check/session.h"
#include "tests/daemon/ctl/program_runner.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kEvents = 600'000;  // some tenths of a second

class InterruptedTest : public testing::OfflineTest {
 protected:
  void SetUp() override {
    OfflineTest::SetUp();
    std::vector<testing::Step> steps;
    for (uint64_t i = 0; i < kEvents; ++i) {
      steps.push_back({i * 1000, i % 2 == 0 ? testing::kCall : testing::kReturn, 0x10});
    }
    write_thread(0, testing::index_of(steps, 4711));
    write_text(session_ / "manifest.json", R"({"threads":[{"id":0,"thread_id":4711}],
      "modules":[],"symbols":[{"function_id":"0x10","name":"main"}]})");
    dial9_ = (root_ / "made.bin").string();
    const Ran ran = runner_.run({"convert", session_.string(), "--to", "dial9", "-o", dial9_});
    ASSERT_TRUE(fs::exists(dial9_)) << ran.err;
  }

  std::set<std::string> entries() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(runner_.directory())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  // Ends the conversion when it has begun to write. On a busy machine it may be through by then:
  // what it wrote is whole, and the next one is tried.
  void expect_nothing_left(const std::string& input, const std::string& to,
                           const std::string& output) {
    const std::set<std::string> before = entries();
    std::set<std::string> with_output = before;
    with_output.insert(output);
    constexpr int kMostTries = 20;
    for (int i = 0; i < kMostTries; ++i) {
      runner_.start({"convert", input, "--to", to, "-o", output});
      ASSERT_TRUE(eventually([&] { return entries() != before; }));
      runner_.send_signal(SIGINT);
      const Ran ran = runner_.finish();
      if (ran.exit_code == 128 + SIGINT && entries() == before) return;
      ASSERT_EQ(entries(), with_output) << to;
      ASSERT_EQ(runner_.run({"verify", output}).exit_code, 0) << "half of it was left";
      fs::remove_all(fs::path(runner_.directory()) / output);
    }
    FAIL() << "each of them ended too soon to be interrupted";
  }

  ProgramRunner runner_;
  std::string dial9_;
};

// Seen: `x.wtf-trace.session-…/` stayed, and in another run half a session.
TEST_F(InterruptedTest, InterruptedConversionLeavesNoFiles) {
  expect_nothing_left(dial9_, "wtf", "x.wtf-trace");
  expect_nothing_left(dial9_, "atf", "sessions");
}

// One file has its name already when the second is written.
TEST_F(InterruptedTest, InterruptedLongConversionLeavesNoFiles) {
  constexpr uint64_t kTwoHours = 7'200'000'000'000;  // a file holds 71 minutes
  std::vector<testing::Step> steps = {{0, testing::kCall, 0x10}, {1000, testing::kReturn, 0x10}};
  for (uint64_t i = 0; i < kEvents; ++i) {
    steps.push_back({kTwoHours + i * 1000, i % 2 == 0 ? testing::kCall : testing::kReturn, 0x10});
  }
  write_thread(0, testing::index_of(steps, 4711));
  expect_nothing_left(session_.string(), "wtf", "x.wtf-trace");
}

}  // namespace
}  // namespace collect::ctl
