// Attaching to programs that do not stay as they are: they load and unload libraries, fork, replace
// themselves and end at any moment of it; and to one whose file has changed since it was started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "daemon/inject/injector.h"
#include "daemon/patch/plan_store.h"
#include "tests/e2e/collector_process.h"

namespace collect::e2e {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr seconds kLimit{120};

class RestlessAttach : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(plans_.ok());
    for (const char* module : {"restless", "restless_library.so"}) {
      const auto plan = patch::plan_for(traced_program(module), "");
      ASSERT_TRUE(plan.ok()) << plan.error().message;
      ASSERT_TRUE(plans_->add(*plan, traced_program(module)).ok());
    }
  }
  Status ask(pid_t pid, patch::AttachTask task) {
    const auto target = inject::look_at_target(pid);
    if (!target.ok()) return target.error();
    const auto outcome =
        inject::attach(*target, {agent_library(),
                                 {"COLLECT_CONNECT=127.0.0.1:1", "COLLECT_PLANS=" + plans_->path()},
                                 task});
    return outcome.ok() ? Status() : outcome.error();
  }
  // Attaches and lets go until `count` attachments went well, or the process is gone.
  int attach_again_and_again(ChildProcess& process, int count) {
    int attached = 0;
    for (int tries = 0; attached < count && tries < 20 * count && process.running(); ++tries) {
      const Status begun = ask(process.pid(), patch::kAttachStart);
      const Status left = ask(process.pid(), patch::kAttachStop);
      if (begun.ok() && left.ok()) {
        ++attached;
      } else {
        const Error& error = begun.ok() ? left.error() : begun.error();
        EXPECT_NE(error.message, "");
        EXPECT_NE(error.code, Code::kDamaged) << error.message;
      }
    }
    return attached;
  }
  std::string stop_file() const { return scratch_ / "stop"; }
  void expect_right(ChildProcess& process) {
    std::ofstream(stop_file()) << "\n";
    const Ending& ending = process.wait(kLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.output << ending.errors;
    EXPECT_EQ(ending.output, "right\n");
  }

  Scratch scratch_;
  Result<patch::PlanFolder> plans_ = patch::PlanFolder::create();
};

TEST_F(RestlessAttach, AttachesWhileLibrariesAreLoadedAndUnloaded) {
  ChildProcess process(scratch_.path(), {traced_program("restless"), "load", stop_file(),
                                         traced_program("restless_library.so")});
  EXPECT_EQ(attach_again_and_again(process, 20), 20);
  expect_right(process);
}

TEST_F(RestlessAttach, AttachesWhileChildrenAreForked) {
  ChildProcess process(scratch_.path(), {traced_program("restless"), "fork", stop_file()});
  EXPECT_EQ(attach_again_and_again(process, 20), 20);
  expect_right(process);
}

TEST_F(RestlessAttach, SurvivesExecDuringAttachment) {
  ChildProcess process(scratch_.path(), {traced_program("restless"), "exec", "100"});
  const int attached = attach_again_and_again(process, 1'000);
  expect_right(process);
  std::printf("%d attachments were complete\n", attached);
}

TEST_F(RestlessAttach, SurvivesExitDuringAttachment) {
  int attached = 0;
  for (int milliseconds = 0; milliseconds < 150; milliseconds += 5) {
    SCOPED_TRACE(milliseconds);
    ChildProcess process(scratch_.path(),
                         {traced_program("restless"), "exit", std::to_string(milliseconds)});
    attached += attach_again_and_again(process, 1);
    expect_right(process);
  }
  std::printf("%d attachments were complete\n", attached);
}

// A newer build is where the program was started from, as after an update.
TEST_F(RestlessAttach, RefusesAProgramWhoseFileWasReplaced) {
  const fs::path file = scratch_ / "program";
  fs::copy_file(traced_program("unprepared"), file);
  ChildProcess process(scratch_.path(), {file, "20", "3", stop_file()});
  fs::copy_file(traced_program("unprepared_fixed"), scratch_ / "newer");
  fs::rename(scratch_ / "newer", file);
  const Ending attached =
      run(scratch_.path(),
          {program("collectctl"), "attach", "-o", scratch_ / "traces", "--max-time", "200ms",
           std::to_string(process.pid())},
          {{"XDG_CACHE_HOME", scratch_ / "cache"}, {"TMPDIR", scratch_.path()}}, kLimit);
  EXPECT_TRUE(attached.exited_with(125)) << attached.describe();
  EXPECT_THAT(attached.errors, HasSubstr(file));
  std::ofstream(stop_file()) << "\n";
  EXPECT_TRUE(process.wait(kLimit).exited_with(0));
}

}  // namespace
}  // namespace collect::e2e
