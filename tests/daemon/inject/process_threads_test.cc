// Threads of a real process that end while they are traced.
#include "daemon/inject/process_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <optional>
#include <string>
#include <thread>

#include "daemon/inject/injector.h"
#include "daemon/inject/target.h"
#include "daemon/inject/traced_thread.h"
#include "tests/child/forked_child.h"

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
    child_.emplace([this] {
      std::thread(child::pause_until_killed).detach();
      char byte = 0;
      (void)!::read(go_[0], &byte, 1);
      ::execl("/bin/sleep", "sleep", "600", nullptr);
      return 1;
    });
    while (threads_of(pid()).size() < 2) std::this_thread::sleep_for(kPause);
  }
  void TearDown() override {
    ::close(go_[0]);
    ::close(go_[1]);
  }
  pid_t pid() const { return child_->pid(); }
  std::string name_of_program() const {
    std::error_code ignored;
    return std::filesystem::read_symlink("/proc/" + std::to_string(pid()) + "/exe", ignored);
  }
  pid_t second_thread() const {
    const std::vector<pid_t> threads = threads_of(pid());
    const auto other =
        std::find_if(threads.begin(), threads.end(), [this](pid_t tid) { return tid != pid(); });
    return other == threads.end() ? 0 : *other;
  }

  int go_[2] = {-1, -1};
  std::optional<child::ForkedChild> child_;
};

TEST_F(ExecutingProcess, EndedThreadsAreNotAmongThem) {
  EXPECT_THAT(threads_of(pid()), SizeIs(2));
  child_->send_signal(SIGKILL);
  while (!threads_of(pid()).empty()) std::this_thread::sleep_for(kPause);
  reap_ended_threads(pid());
  EXPECT_EQ(child_->wait().signal, SIGKILL) << "its parent waits for it, no one else";
}

// Where the tracer is the parent, too.
TEST_F(ExecutingProcess, ParentCanWaitForATracedProcess) {
  auto first = TracedThread::seize(pid());
  auto second = TracedThread::seize(second_thread());
  ASSERT_TRUE(first.ok() && second.ok());
  child_->send_signal(SIGKILL);
  const Deadline soon = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  EXPECT_EQ(second->await_stop(soon).code(), Code::kNotFound);
  EXPECT_EQ(first->await_stop(soon).code(), Code::kNotFound);
  EXPECT_EQ(child_->wait().signal, SIGKILL);
}

TEST_F(ExecutingProcess, ExecContinuesWhileItsThreadsAreSeized) {
  std::promise<void> seized;
  auto tracer = std::async(std::launch::async, [&]() -> Status {
    const auto second = TracedThread::seize(second_thread());
    seized.set_value();
    if (!second.ok()) return second.error();
    while (threads_of(pid()).size() == 2) std::this_thread::sleep_for(kPause);
    const auto first = TracedThread::seize(pid());  // waits for the exec
    return first.ok() ? Status() : first.error();
  });
  seized.get_future().wait();
  ASSERT_EQ(::write(go_[1], "x", 1), 1);
  while (tracer.wait_for(kPause) != std::future_status::ready) reap_ended_threads(pid());
  const Status both = tracer.get();
  EXPECT_TRUE(both.ok()) << both.error().message;
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid()) + "/comm"), name);
  EXPECT_EQ(name, "sleep");
}

// Between the look and the attachment a process may end, and another one get its number; or it
// becomes another program, perhaps one with other rights.
TEST_F(ExecutingProcess, ItIsTheOneThatWasLookedAt) {
  const auto target = look_at_target(pid());
  ASSERT_TRUE(target.ok()) << target.error().message;
  EXPECT_GT(target->started, 0u);
  EXPECT_TRUE(check_same(*target).ok());
  Target other = *target;
  ++other.started;
  EXPECT_EQ(check_same(other).code(), Code::kNotFound);
  EXPECT_EQ(attach(other, {}).code(), Code::kNotFound);
  ASSERT_EQ(::write(go_[1], "x", 1), 1);
  while (threads_of(pid()).size() > 1 || name_of_program() != "/usr/bin/sleep") {
    std::this_thread::sleep_for(kPause);
  }
  const Status changed = check_same(*target);
  EXPECT_EQ(changed.code(), Code::kNotFound);
  EXPECT_NE(changed.error().message.find("runs another program"), std::string::npos);
  EXPECT_EQ(attach(*target, {}).code(), Code::kNotFound);
  child_->send_signal(SIGKILL);
  child_->wait();
  EXPECT_EQ(check_same(*target).code(), Code::kNotFound);
}

}  // namespace
}  // namespace collect::inject
