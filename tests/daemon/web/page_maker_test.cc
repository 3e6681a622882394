// The maker with programs that stand in for collect-page: shell scripts that do what it must not.
#include "daemon/web/page_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <vector>

namespace collect::web {
namespace {

using ::testing::HasSubstr;

class PageMakerTest : public ::testing::Test {
 protected:
  PageMakerTest() {
    std::string directory = ::testing::TempDir() + "page_maker_XXXXXX";
    directory_ = ::mkdtemp(directory.data());
  }
  ~PageMakerTest() override { std::filesystem::remove_all(directory_); }

  PageMaker& maker(const std::string& script) {
    const std::string program = directory_ + "/program";
    std::ofstream(program) << "#!/bin/sh\n" << script << "\n";
    ::chmod(program.c_str(), 0700);
    return maker_.emplace(program);
  }

  // Asks for a page; wait() gives the answers in the order in which they came.
  PageMaker::Cancelled ask(const std::string& directory = "/session") {
    auto cancelled = std::make_shared<std::atomic<bool>>(false);
    maker_->make({directory, false, std::nullopt}, cancelled, [this](Result<PageMaker::Page> page) {
      const std::lock_guard lock(mutex_);
      answers_.push_back(std::move(page));
      changed_.notify_all();
    });
    return cancelled;
  }
  Result<PageMaker::Page>& wait(size_t count) {
    std::unique_lock lock(mutex_);
    const bool came =
        changed_.wait_for(lock, std::chrono::seconds(30), [&] { return answers_.size() >= count; });
    EXPECT_TRUE(came) << "no answer";
    if (!came) answers_.resize(count, Error{Code::kCancelled, "none"});
    return answers_[count - 1];
  }
  size_t answers() {
    const std::lock_guard lock(mutex_);
    return answers_.size();
  }
  bool eventually_exists(const std::string& name) {
    for (int i = 0; i < 3000; ++i) {
      if (std::filesystem::exists(directory_ + "/" + name)) return true;
      ::usleep(10'000);
    }
    return false;
  }

  std::string directory_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Result<PageMaker::Page>> answers_;
  std::optional<PageMaker> maker_;  // last: it ends before what its answers use
};

TEST_F(PageMakerTest, GivesTheRequestAndTakesThePage) {
  maker("echo '<!doctype html>'; cat");
  ask("/a");
  const auto& page = wait(1);
  ASSERT_TRUE(page.ok()) << page.error().message;
  const PageRequest asked{"/a", false, std::nullopt};
  EXPECT_EQ(page->html, "<!doctype html>\n" + asked.to_json());
}

TEST_F(PageMakerTest, ErrorOfTheProgramIsAnError) {
  maker("echo '{\"error\":\"no such session\"}'");
  ask();
  const auto& page = wait(1);
  ASSERT_FALSE(page.ok());
  EXPECT_EQ(page.error().message, "no such session");
}

TEST_F(PageMakerTest, ProgramThatFailsOrCrashesIsAnError) {
  maker("exit 3");
  ask();
  EXPECT_THAT(wait(1).error().message, HasSubstr("exit code 3"));
  maker("kill -SEGV $$");
  ask();
  EXPECT_THAT(wait(2).error().message, HasSubstr("crashed"));
  EXPECT_THAT(answers_[1].error().message, HasSubstr("collectctl open --no-serve /session"));
}

TEST_F(PageMakerTest, PageThatIsTooLargeIsAnError) {
  maker("head -c " + std::to_string(kMaxPageBytes + 1) + " /dev/zero");
  ask();
  EXPECT_EQ(wait(1).code(), Code::kLimit);
  EXPECT_THAT(answers_[0].error().message, HasSubstr("64 MB of output"));
}

TEST_F(PageMakerTest, WithoutTheProgramThereIsNoPage) {
  maker_.emplace(directory_ + "/missing");
  ask();
  EXPECT_EQ(wait(1).code(), Code::kNotFound);
}

TEST_F(PageMakerTest, CancelledPageEnds) {
  maker("touch " + directory_ + "/began; exec sleep 1000");
  const auto cancelled = ask();
  ASSERT_TRUE(eventually_exists("began"));
  *cancelled = true;
  EXPECT_EQ(wait(1).code(), Code::kCancelled);
}

TEST_F(PageMakerTest, EndOfTheMakerEndsPagesAndAnswers) {
  maker("touch " + directory_ + "/began; exec sleep 1000");
  for (size_t i = 0; i <= kMaxPagesAtOnce; ++i) ask();
  ASSERT_TRUE(eventually_exists("began"));
  maker_.reset();
  EXPECT_EQ(answers(), kMaxPagesAtOnce + 1);
  for (const auto& page : answers_) EXPECT_EQ(page.code(), Code::kCancelled);
}

TEST_F(PageMakerTest, TooManyPagesAreRefusedUntilOneWasSent) {
  maker("echo page");
  for (size_t i = 0; i < kMaxPages; ++i) ask();
  wait(kMaxPages);
  for (const auto& page : answers_) ASSERT_TRUE(page.ok());
  ask();
  EXPECT_EQ(wait(kMaxPages + 1).code(), Code::kLimit) << "the answers are held";
  {
    const std::lock_guard lock(mutex_);
    answers_.clear();
  }
  ask();
  EXPECT_TRUE(wait(1).ok());
}

}  // namespace
}  // namespace collect::web
