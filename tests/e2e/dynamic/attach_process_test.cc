// `collectctl attach PID`: programs that no one prepared and that run already.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "daemon/inject/injector.h"
#include "daemon/patch/plan_store.h"
#include "tests/child/forked_child.h"
#include "tests/e2e/collector_process.h"
#include "tests/e2e/recorded_session.h"
#include "tests/fakes/machine/other_user.h"

namespace collect::e2e {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr seconds kLimit{120};

class AttachProcess : public ::testing::Test {
 protected:
  // Until release().
  std::unique_ptr<ChildProcess> start(const std::string& threads = "3") {
    return std::make_unique<ChildProcess>(
        scratch_.path(), Arguments{traced_program("unprepared"), "20", threads, stop_file()});
  }
  std::string stop_file() const { return scratch_ / "stop"; }
  void release() { std::ofstream(stop_file()) << "\n"; }
  void expect_right(ChildProcess& process) {
    release();
    const Ending& ending = process.wait(kLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.output << ending.errors;
  }

  Arguments attaching(pid_t pid, const Arguments& options) const {
    Arguments line{program("collectctl"), "attach", "-o", traces()};
    line.insert(line.end(), options.begin(), options.end());
    line.push_back(std::to_string(pid));
    return line;
  }
  // What a killed collectctl leaves behind goes with the test.
  Environment environment() const {
    return {{"XDG_CACHE_HOME", scratch_ / "cache"}, {"TMPDIR", scratch_.path()}};
  }
  Ending attach(pid_t pid, const Arguments& options = {}) {
    return run(scratch_.path(), attaching(pid, options), environment(), kLimit);
  }
  void expect_refused(pid_t pid, const std::string& words) {
    const Ending ending = attach(pid);
    EXPECT_TRUE(ending.exited_with(125)) << ending.describe();
    EXPECT_THAT(ending.errors, HasSubstr(words));
  }
  std::string traces() const { return scratch_ / "traces"; }

  Scratch scratch_;
};

TEST_F(AttachProcess, RecordsForATimeAndLetsGo) {
  const auto process = start();
  const Ending ending = attach(process->pid(), {"--max-time", "300ms"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  EXPECT_THAT(ending.errors, AllOf(HasSubstr(" stood still for "), HasSubstr("lost       nothing"),
                                   HasSubstr("continues untraced: the recording ended")));
  expect_right(*process);
  const auto directories = session_directories(traces(), process->pid());
  ASSERT_EQ(directories.size(), 1u);
  const RecordedSession session(directories[0]);
  EXPECT_EQ(session.state(), "complete");
  EXPECT_EQ(session.manifest()["threads"].size(), 3u) << "main sleeps in the C library";
  const Ending verified = run(scratch_.path(), {program("collectctl"), "verify", directories[0]});
  EXPECT_TRUE(verified.exited_with(0)) << verified.output << verified.errors;
}

// Names that a reader of /proc/PID/maps or of a terminal may take for something else.
TEST_F(AttachProcess, HostileFileNameIsAName) {
  const std::string hostile =
      scratch_ / "x\x1b]0;title\x07 (deleted)\n7f00-7f01 r-xp 00000000 00:00 1 \x1b[31mlibc.so.6";
  std::filesystem::copy_file(traced_program("unprepared"), hostile);
  ChildProcess process(scratch_.path(), {hostile, "20", "3", stop_file()});
  const Ending ending = attach(process.pid(), {"--max-time", "300ms"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  for (const char control : {'\x1b', '\x07'}) {
    EXPECT_EQ((ending.output + ending.errors).find(control), std::string::npos) << ending.errors;
  }
  EXPECT_THAT(ending.errors, HasSubstr("lost       nothing"));
  expect_right(process);
  const auto directories = session_directories(traces(), process.pid());
  ASSERT_EQ(directories.size(), 1u);
  EXPECT_GT(RecordedSession(directories[0]).totals().events, 0u);
}

TEST_F(AttachProcess, HotFunctionsAreSwitchedOff) {
  const auto process = start();
  const Ending ending =
      attach(process->pid(), {"--max-time", "2s", "--max-rate", "1000", "--when-full", "drop"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr(" as --max-rate asks; calls from then on are missing:\n"));
  expect_right(*process);
}

TEST_F(AttachProcess, EndsWithTheProcess) {
  const auto process = start();
  ChildProcess attached(scratch_.path(), attaching(process->pid(), {}), environment());
  ASSERT_TRUE(eventually(kLimit, [&] {
    return attached.errors().find("the agent is connected") != std::string::npos;
  })) << attached.errors();
  expect_right(*process);
  const Ending& ending = attached.wait(kLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  EXPECT_THAT(ending.errors, HasSubstr(") has ended\n"));
  ASSERT_EQ(sealed_sessions(traces(), process->pid(), kLimit).size(), 1u);
}

TEST_F(AttachProcess, CtrlCDetachesAndItCanBeAttachedAgain) {
  const auto process = start();
  for (size_t round = 1; round <= 3; ++round) {
    ChildProcess attached(scratch_.path(), attaching(process->pid(), {}), environment());
    ASSERT_TRUE(eventually(kLimit, [&] {
      return attached.errors().find("the agent is connected") != std::string::npos;
    })) << attached.errors();
    attached.send_signal(SIGINT);
    const Ending& ending = attached.wait(kLimit);
    EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
    EXPECT_THAT(ending.errors, HasSubstr(") continues untraced\n"));
    EXPECT_EQ(session_directories(traces(), process->pid()).size(), round);
  }
  const Ending detached =
      run(scratch_.path(), {program("collectctl"), "detach", std::to_string(process->pid())});
  EXPECT_TRUE(detached.exited_with(0)) << detached.errors;
  EXPECT_THAT(detached.output, HasSubstr("continues untraced"));
  expect_right(*process);
}

// A collectctl that is killed leaves an agent that records into nothing; the next one takes it
// over.
TEST_F(AttachProcess, KilledCollectctlIsNoEndOfTheProcess) {
  const auto process = start();
  for (int round = 0; round < 3; ++round) {
    ChildProcess attached(scratch_.path(), attaching(process->pid(), {"--when-full", "drop"}),
                          environment());
    ASSERT_TRUE(eventually(kLimit, [&] {
      return attached.errors().find("stood still") != std::string::npos ||
             attached.errors().find("the agent is connected") != std::string::npos;
    })) << attached.errors();
    attached.send_signal(SIGKILL);
    attached.wait(kLimit);
  }
  const Ending ending = attach(process->pid(), {"--max-time", "100ms"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.errors;
  expect_right(*process);
}

TEST_F(AttachProcess, ProgramThatWaitsInTheKernel) {
  const std::string fifo = scratch_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const int end = open(fifo.c_str(), O_RDWR | O_CLOEXEC);
  ChildProcess process(scratch_.path(),
                       {"/usr/bin/lua5.4", "-e", "print(io.open('" + fifo + "'):read('n') + 2)"});
  // The first call of a process that waits is the one that ends the wait.
  ChildProcess attached(scratch_.path(), attaching(process.pid(), {}), environment());
  ASSERT_TRUE(eventually(kLimit, [&] {
    return attached.errors().find("the agent is connected") != std::string::npos;
  })) << attached.errors();
  ASSERT_EQ(write(end, "40\n", 3), 3);
  EXPECT_EQ(process.wait(kLimit).output, "42\n");
  EXPECT_TRUE(attached.wait(kLimit).exited_with(0)) << attached.errors();
  const auto directories = session_directories(traces(), process.pid());
  ASSERT_EQ(directories.size(), 1u);
  EXPECT_GT(RecordedSession(directories[0]).totals().events, 100u);
  close(end);
}

TEST_F(AttachProcess, MaxTimeEndsARecordingWithoutCalls) {
  ChildProcess process(scratch_.path(), {"/bin/sleep", "60"});
  const Ending ending = attach(process.pid(), {"--max-time", "100ms"});
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe();
  EXPECT_THAT(ending.errors, AllOf(HasSubstr("continues untraced: the recording ended"),
                                   HasSubstr("Nothing was recorded: no function of the modules")));
  EXPECT_TRUE(process.running());
}

TEST_F(AttachProcess, RootMayAttachToAProcessOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "it takes root";
  const std::string program = traced_program("unprepared");
  fakes::OtherUser looks(
      [&] { return access(program.c_str(), X_OK) + access(agent_library().c_str(), R_OK); });
  if (looks.wait() != 0) GTEST_SKIP() << "that user may not read this build";
  const std::string stop = "/tmp/attach_stop_" + std::to_string(getpid());
  fakes::OtherUser other([&] {
    execl(program.c_str(), program.c_str(), "20", "2", stop.c_str(), nullptr);
    return 9;
  });
  ASSERT_TRUE(eventually(kLimit, [&] {
    return std::filesystem::read_symlink("/proc/" + std::to_string(other.pid()) + "/exe")
               .filename() == "unprepared";
  }));
  const pid_t pid = other.pid();
  expect_refused(pid, "its user may not read the folder with the plans (TMPDIR)");
  const Ending ending = run(scratch_.path(), attaching(pid, {"--max-time", "200ms"}),
                            {{"XDG_CACHE_HOME", scratch_ / "cache"}}, kLimit);
  EXPECT_TRUE(ending.exited_with(0)) << ending.describe() << ending.errors;
  std::ofstream(stop) << "\n";
  EXPECT_EQ(other.wait(), 0);
  std::filesystem::remove(stop);
  ASSERT_EQ(session_directories(traces(), pid).size(), 1u);
}

TEST_F(AttachProcess, ExplainsRefusedProcessesInOneSentence) {
  expect_refused(999'999'999, "no process 999999999");
  const auto process = start();
  process->send_signal(SIGSTOP);
  ASSERT_TRUE(eventually(kLimit, [&] {
    return read_text_file("/proc/" + std::to_string(process->pid()) + "/status")
               .find("T (stopped)") != std::string::npos;
  }));
  expect_refused(process->pid(), "is stopped: let it run first (kill -CONT ");
  process->send_signal(SIGCONT);
  ASSERT_EQ(ptrace(PTRACE_SEIZE, process->pid(), nullptr, nullptr), 0);
  expect_refused(process->pid(), "is traced by process " + std::to_string(getpid()));
  ASSERT_EQ(ptrace(PTRACE_INTERRUPT, process->pid(), nullptr, nullptr), 0);
  ASSERT_EQ(waitpid(process->pid(), nullptr, __WALL), process->pid());
  ASSERT_EQ(ptrace(PTRACE_DETACH, process->pid(), nullptr, nullptr), 0);
  expect_right(*process);
}

TEST_F(AttachProcess, RefusesAProcessStartedWithAnAgent) {
  ChildProcess process(scratch_.path(), {traced_program("unprepared"), "20", "1", stop_file()},
                       {{"LD_PRELOAD", agent_library()}, {"COLLECT_CONNECT", "127.0.0.1:1"}});
  expect_refused(process.pid(), "it was started with an agent: collectctl agents lists it");
  expect_right(process);
}

// A child of this test in a state of its own.
class ChildInState : public child::ForkedChild {
 public:
  explicit ChildInState(bool (*enter)(), void (*stay)() = nullptr)
      : ForkedChild([=](const Ready& ready) {
          if (!enter()) return 1;
          ready();
          if (stay != nullptr) stay();
          return child::pause_until_killed();
        }) {}
};

TEST_F(AttachProcess, FilterOfSystemCallsIsNotTried) {
  const ChildInState child([] {
    sock_filter all[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const sock_fprog program{1, all};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
  });
  ASSERT_TRUE(child.was_ready());
  expect_refused(child.pid(), "runs under a seccomp filter");
}

// Its only thread is always in code that no file holds, where it may hold anything.
TEST_F(AttachProcess, CtrlCEndsTheSearchForAThread) {
  const ChildInState child([] { return true; },
                           [] {
                             constexpr uint8_t kLoop[] = {0xEB, 0xFE};
                             void* const code =
                                 mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                             memcpy(code, kLoop, sizeof kLoop);
                             reinterpret_cast<void (*)()>(code)();
                           });
  // Of this test itself, which a plan may be made for.
  ChildProcess attached(scratch_.path(), attaching(child.pid(), {}), environment());
  ASSERT_TRUE(eventually(kLimit, [&] {
    return attached.errors().find("control plane") != std::string::npos;
  })) << attached.errors();
  attached.send_signal(SIGINT);
  const Ending& ending = attached.wait(kLimit);
  EXPECT_TRUE(ending.exited_with(125)) << ending.describe();
  EXPECT_THAT(ending.errors, HasSubstr("cannot be attached to: interrupted"));
}

TEST_F(AttachProcess, ContainerIsAnotherWorld) {
  const ChildInState child([] { return unshare(CLONE_NEWNS) == 0; });
  if (!child.was_ready()) GTEST_SKIP() << "it takes root";
  expect_refused(child.pid(), "sees other files than collectctl does (a container)");
}

// What becomes of the stubs of this very program when `ending` is what its agent finds where it
// waits for its jumps: whether they are still there afterwards. No jump is ever written.
bool stubs_stay(patch::AttachState ending, const std::string& library, const std::string& plans) {
  const auto answer = [&]() -> int {
    void* const agent = dlopen(library.c_str(), RTLD_NOW);
    const auto attach = reinterpret_cast<void (*)(void*)>(dlsym(agent, patch::kAttachEntry));
    if (attach == nullptr) return 2;
    auto request = std::make_unique<patch::AttachRequest>();
    const std::string variables =
        "COLLECT_CONNECT=127.0.0.1:1" + std::string(1, '\0') + "COLLECT_PLANS=" + plans;
    memcpy(request->variables, variables.data(), variables.size());
    auto& state = reinterpret_cast<std::atomic<uint32_t>&>(request->state);
    std::thread thread([&] { attach(request.get()); });
    if (!eventually(kLimit, [&] { return state != patch::kAttachLoading; })) return 3;
    if (state != patch::kAttachPrepared) return 4;
    const auto& jump = *reinterpret_cast<const patch::AttachJump*>(request->jumps);
    int32_t distance = 0;
    memcpy(&distance, jump.jump + 1, sizeof distance);
    const uint64_t stub = jump.address + patch::kJumpBytes + static_cast<uint64_t>(distance);
    state = ending;
    thread.join();
    unsigned char resident = 0;
    return mincore(reinterpret_cast<void*>(stub & ~uint64_t{4095}), 4096, &resident) == 0 ? 1 : 0;
  };
  const Ending end = child::forked(answer);
  EXPECT_TRUE(end.exited_with(0) || end.exited_with(1)) << end.describe();
  return end.exit_code == 1;
}

// collectctl may be killed at any moment. Where it has begun to write, no one knows how far it
// came.
TEST_F(AttachProcess, StubsStayWhereThereMayBeAJump) {
  const auto plan = patch::plan_for(std::filesystem::read_symlink("/proc/self/exe"), "");
  ASSERT_TRUE(plan.ok()) << plan.error().message;
  const auto plans = patch::PlanFolder::create();
  ASSERT_TRUE(plans.ok() && plans->add(*plan, "/proc/self/exe").ok());
  EXPECT_TRUE(stubs_stay(patch::kAttachCommitting, agent_library(), plans->path()));
  EXPECT_TRUE(stubs_stay(patch::kAttachCommitted, agent_library(), plans->path()));
  EXPECT_FALSE(stubs_stay(patch::kAttachFailed, agent_library(), plans->path()));
}

// Attaches to processes from within the test. An agent that reaches no one records into its rings
// and drops what does not fit.
class AttachStorm : public AttachProcess {
 protected:
  void SetUp() override {
    const auto plan = patch::plan_for(traced_program("unprepared"), "");
    ASSERT_TRUE(plan.ok()) << plan.error().message;
    ASSERT_TRUE(plans_.ok());
    ASSERT_TRUE(plans_->add(*plan, traced_program("unprepared")).ok());
    const char* const given = std::getenv("COLLECT_ATTACH_ROUNDS");
    if (given != nullptr) rounds_ = std::atoi(given);
  }
  void attach_and_leave(pid_t pid) {
    const auto target = inject::look_at_target(pid);
    ASSERT_TRUE(target.ok()) << target.error().message;
    const auto attached =
        inject::attach(*target, {agent_library(),
                                 {"COLLECT_CONNECT=127.0.0.1:1", "COLLECT_PLANS=" + plans_->path()},
                                 patch::kAttachStart});
    ASSERT_TRUE(attached.ok()) << attached.error().message;
    if (attached->jumps != 0) {
      stops_ms_.push_back(static_cast<double>(attached->stopped.count()) / 1e6);
      moved_ += attached->moved;
    }
    const auto left = inject::attach(*target, {agent_library(), {}, patch::kAttachStop});
    ASSERT_TRUE(left.ok()) << left.error().message;
  }
  void TearDown() override {
    if (stops_ms_.empty()) return;
    std::sort(stops_ms_.begin(), stops_ms_.end());
    std::printf("%zu stops, median %.1f ms, worst %.1f ms; %zu threads moved\n", stops_ms_.size(),
                stops_ms_[stops_ms_.size() / 2], stops_ms_.back(), moved_);
  }

  Result<patch::PlanFolder> plans_ = patch::PlanFolder::create();
  int rounds_ = 10;
  std::vector<double> stops_ms_;
  size_t moved_ = 0;
};

TEST_F(AttachStorm, OneProcessManyTimes) {
  const auto process = start("32");
  for (int round = 0; round < rounds_ && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(round);
    attach_and_leave(process->pid());
  }
  expect_right(*process);
}

TEST_F(AttachStorm, ManyProcessesOnce) {
  for (int round = 0; round < rounds_ && !HasFatalFailure(); ++round) {
    SCOPED_TRACE(round);
    const auto process = start("8");
    attach_and_leave(process->pid());
    expect_right(*process);
    std::filesystem::remove(stop_file());
  }
}

}  // namespace
}  // namespace collect::e2e
