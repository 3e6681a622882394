// Threads of a real process that end while they are traced.
#include "daemon/inject/process_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <thread>

#include "daemon/inject/injector.h"
#include "daemon/inject/target.h"
#include "daemon/inject/traced_thread.h"

namespace collect::inject {
namespace {

using ::testing::SizeIs;

constexpr std::chrono::milliseconds kPause{10};

TEST(ThreadsOf, ThisProcessHasThisOne) {
  const std::vector<pid_t> threads = threads_of(::getpid());
  EXPECT_NE(std::find(threads.begin(), threads.end(), ::gettid()), threads.end());
  EXPECT_TRUE(threads_of(999'999'999).empty());
}

// A child with two threads, of which the first calls exec when a byte comes.
class ExecutingProcess : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::pipe(go_), 0);
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::thread([] {
        for (;;) ::pause();
      }).detach();
      char byte = 0;
      (void)!::read(go_[0], &byte, 1);
      ::execl("/bin/sleep", "sleep", "600", nullptr);
      ::_exit(1);
    }
    ASSERT_GT(child_, 0);
    while (threads_of(child_).size() < 2) std::this_thread::sleep_for(kPause);
  }
  void TearDown() override {
    if (child_ > 0) {
      ::kill(child_, SIGKILL);
      ::waitpid(child_, nullptr, 0);
    }
    ::close(go_[0]);
    ::close(go_[1]);
  }
  std::string name_of_program() const {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + std::to_string(child_) + "/exe", ignored);
  }
  pid_t second_thread() const {
    const std::vector<pid_t> threads = threads_of(child_);
    const auto other =
        std::find_if(threads.begin(), threads.end(), [this](pid_t tid) { return tid != child_; });
    return other == threads.end() ? 0 : *other;
  }

  int go_[2] = {-1, -1};
  pid_t child_ = -1;
};

TEST_F(ExecutingProcess, EndedThreadsAreNotAmongThem) {
  EXPECT_THAT(threads_of(child_), SizeIs(2));
  ::kill(child_, SIGKILL);
  while (!threads_of(child_).empty()) std::this_thread::sleep_for(kPause);
  reap_ended_threads(child_);
  int status = 0;
  EXPECT_EQ(::waitpid(child_, &status, 0), child_) << "its parent waits for it, no one else";
  EXPECT_TRUE(WIFSIGNALED(status));
  child_ = -1;
}

// Where the tracer is the parent, too.
TEST_F(ExecutingProcess, ParentCanWaitForATracedProcess) {
  auto first = TracedThread::seize(child_);
  auto second = TracedThread::seize(second_thread());
  ASSERT_TRUE(first.ok() && second.ok());
  ::kill(child_, SIGKILL);
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  EXPECT_EQ(second->await_stop(soon).code(), Code::kNotFound);
  EXPECT_EQ(first->await_stop(soon).code(), Code::kNotFound);
  int status = 0;
  EXPECT_EQ(::waitpid(child_, &status, 0), child_);
  EXPECT_TRUE(WIFSIGNALED(status));
  child_ = -1;
}

TEST_F(ExecutingProcess, ExecContinuesWhileItsThreadsAreSeized) {
  std::promise<void> seized;
  auto tracer = std::async(std::launch::async, [&]() -> Status {
    const auto second = TracedThread::seize(second_thread());
    seized.set_value();
    if (!second.ok()) return second.error();
    while (threads_of(child_).size() == 2) std::this_thread::sleep_for(kPause);
    const auto first = TracedThread::seize(child_);  // waits for the exec
    return first.ok() ? Status() : first.error();
  });
  seized.get_future().wait();
  ASSERT_EQ(::write(go_[1], "x", 1), 1);
  while (tracer.wait_for(kPause) != std::future_status::ready) reap_ended_threads(child_);
  const Status both = tracer.get();
  EXPECT_TRUE(both.ok()) << both.error().message;
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(child_) + "/comm"), name);
  EXPECT_EQ(name, "sleep");
}

// Between the look and the attachment a process may end, and another one get its number; or it
// becomes another program, perhaps one with other rights.
TEST_F(ExecutingProcess, ItIsTheOneThatWasLookedAt) {
  const auto target = look_at_target(child_);
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_GT(target->started, 0u);
  EXPECT_TRUE(check_same(*target).ok());
  Target other = *target;
  ++other.started;
  EXPECT_EQ(check_same(other).code(), Code::kNotFound);
  EXPECT_EQ(attach(other, {}).code(), Code::kNotFound);
  ASSERT_EQ(::write(go_[1], "x", 1), 1);
  while (threads_of(child_).size() > 1 || name_of_program() != "/usr/bin/sleep") {
    std::this_thread::sleep_for(kPause);
  }
  const Status changed = check_same(*target);
  EXPECT_EQ(changed.code(), Code::kNotFound);
  EXPECT_NE(changed.error().message.find("runs another program"), std::string::npos);
  EXPECT_EQ(attach(*target, {}).code(), Code::kNotFound);
  ::kill(child_, SIGKILL);
  ::waitpid(child_, nullptr, 0);
  EXPECT_EQ(check_same(*target).code(), Code::kNotFound);
  child_ = -1;
}

}  // namespace
}  // namespace collect::inject
