#include "daemon/symbolize/child_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/limits.h"
#include "tests/child/forked_child.h"
#include "tests/fakes/machine/older_kernel.h"
#include "tests/fakes/sanitized.h"

namespace collect::symbolize::test {
namespace {

using std::chrono::milliseconds;

struct Probed {
  std::string fault;
  int exit_code = -1;
  std::string output;
};

Probed probe(const std::string& what, milliseconds deadline = milliseconds(60'000),
             uint64_t output_bytes = 1u << 20) {
  Probed run;
  const auto ending =
      run_child({CONFINED_PROBE}, {reinterpret_cast<const uint8_t*>(what.data()), what.size()},
                {deadline, output_bytes, nullptr}, [&run](Bytes bytes) {
                  run.output.append(bytes.begin(), bytes.end());
                  return Status();
                });
  if (!ending.ok()) {
    run.fault = "not started: " + to_string(ending.error());
  } else {
    run.fault = ending->fault;
    run.exit_code = ending->exit_code;
  }
  return run;
}

// Sanitizers cannot live under these limits; then the child says so, and nothing can be shown.
bool is_confined() {
  return probe("missing").output.empty();
}

// Where the kernel takes filters of system calls it takes this one.
TEST(ChildProgram, IsConfinedWhereverItCanBe) {
#if defined(__x86_64__) || defined(__aarch64__)
  if (fakes::kSanitized) GTEST_SKIP() << "built with a sanitizer";
  const int filtered = fakes::without_system_call(SYS_getppid, [] { return 0; });
  if (filtered != 0) GTEST_SKIP() << "a kernel without filters of system calls";
  EXPECT_EQ(probe("missing").output, "");
#else
  EXPECT_NE(probe("missing").output, "");
#endif
}

TEST(ChildProgram, AnswersAndEnds) {
  const Probed run = probe("answer");
  EXPECT_EQ(run.fault, "");
  EXPECT_EQ(run.exit_code, 0);
  EXPECT_EQ(run.output, "done");
}

// SYMBOLIZE.md "Confinement": with anything that the parent has.
TEST(ChildProgram, HasNothingOfItsParents) {
  const int zero = ::open("/dev/zero", O_RDWR);
  const int open = ::fcntl(zero, F_DUPFD, 3);  // the first that it could have
  ::close(zero);
  ASSERT_GT(open, 2);
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto ignored = ::signal(SIGUSR2, SIG_IGN);
  const int errors = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  ::dup2(open, STDERR_FILENO);
  const Probed run = probe("surroundings");
  ::dup2(errors, STDERR_FILENO);
  ::close(errors);
  ::signal(SIGUSR2, ignored);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(open);
  EXPECT_EQ(run.output, "0 1 2 /dev/null /");
}

TEST(ChildProgram, LimitsItselfAsTheTableSays) {
  const std::string memory = is_confined() ? "1073741824 " : std::to_string(RLIM_INFINITY) + " ";
  EXPECT_EQ(probe("limits").output, memory + "10 of 11 0 0 0 272 dumpable 0 at its parent's end " +
                                        std::to_string(SIGKILL));
}

// The process that started the daemon may have left it less.
TEST(ChildProgram, TakesNoMoreThanItWasLeft) {
  fakes::OtherUser child(
      [] {
        const rlimit least{100, 100};
        if (::setrlimit(RLIMIT_NOFILE, &least) != 0) return 1;
        return probe("limits").output.find(" 100 dumpable") != std::string::npos ? 0 : 2;
      },
      ::getuid());
  EXPECT_EQ(child.wait(), 0);
}

TEST(ChildProgram, EveryEndIsSaid) {
  EXPECT_EQ(probe("segment").fault, "crashed (signal " + std::to_string(SIGSEGV) + ")");
  const auto at_exit = [](int code) { return probe("exit" + std::to_string(code)); };
  EXPECT_EQ(at_exit(kExitNoMemory).fault, "ended: more than 1024 MB of memory");
  EXPECT_EQ(at_exit(kExitNotConfined).fault,
            "not begun: the lookup could not give up its privileges");
  EXPECT_EQ(at_exit(kExitBadRequest).fault, "ended with exit code 3");
  EXPECT_EQ(at_exit(kExitBadRequest).exit_code, kExitBadRequest);
}

TEST(ChildProgram, HasNoCapabilities) {
  const Probed run = probe("capabilities");
  for (const char* set : {"Inh", "Prm", "Eff", "Amb"}) {
    EXPECT_NE(run.output.find(std::string("Cap") + set + ":\t0000000000000000"), std::string::npos)
        << run.output;
  }
  EXPECT_NE(run.output.find("NoNewPrivs:\t1"), std::string::npos) << run.output;
}

// Leaves this process the capabilities from `first` to `last`, and no others to its children.
bool keep_capabilities(int first, int last) {
  __user_cap_data_struct kept[2] = {};
  for (int capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; ++capability) {
    if (capability >= first && capability <= last) {
      kept[capability / 32].permitted |= uint32_t{1} << capability % 32;
    } else if (::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) {
      return false;
    }
  }
  __user_cap_header_struct header{};
  header.version = _LINUX_CAPABILITY_VERSION_3;
  __user_cap_data_struct held[2] = {};
  if (::syscall(SYS_capget, &header, held) != 0) return false;
  for (size_t word = 0; word < 2; ++word) {
    kept[word].permitted &= held[word].permitted;
    kept[word].effective = kept[word].permitted;
  }
  return ::syscall(SYS_capset, &header, kept) == 0;
}

// Also those of a service that was left only some: the kernel tells them in two words.
TEST(ChildProgram, HasNoCapabilitiesWhicheverItsParentHas) {
  constexpr int kNotPermitted = 77;
  const std::pair<int, int> ranges[] = {{0, 31}, {32, 63}, {0, 0}, {32, 32}};
  for (const auto& [first, last] : ranges) {
    fakes::OtherUser child(
        [first, last] {
          if (!keep_capabilities(first, last) || ::access(CONFINED_PROBE, X_OK) != 0) {
            return kNotPermitted;
          }
          const std::string said = probe("capabilities").output;
          return said.find("CapPrm:\t0000000000000000") != std::string::npos ? 0 : 1;
        },
        ::getuid());
    const int outcome = child.wait();
    if (outcome == kNotPermitted) GTEST_SKIP() << "capabilities can't be dropped here";
    EXPECT_EQ(outcome, 0) << first << " to " << last;
  }
}

// A locked-down service that has none may not even make the call that would drop them.
TEST(ChildProgram, StartsWithoutCapabilitiesToDrop) {
  constexpr int kNotPermitted = 77;
  fakes::OtherUser child(
      [] {
        if (!keep_capabilities(0, -1) || ::access(CONFINED_PROBE, X_OK) != 0) return kNotPermitted;
        return fakes::without_system_call(
            SYS_capset, [] { return probe("capabilities").output.empty() ? 1 : 0; }, EPERM);
      },
      ::getuid());
  const int outcome = child.wait();
  if (outcome == kNotPermitted) GTEST_SKIP() << "capabilities can't be dropped here";
  EXPECT_EQ(outcome, 0);
}

#if defined(__x86_64__)
// Kernels may be built without them: then they crash the process that makes one.
bool has_i386_calls() {
  return child::forked([] {
           long answer = 20;  // getpid
           __asm__ volatile("int $0x80" : "+a"(answer) : : "memory");
           return answer > 0 ? 0 : 1;
         })
      .exited_with(0);
}
#endif

TEST(ChildProgram, IsKilledForEverythingButComputing) {
  if (!is_confined()) GTEST_SKIP() << probe("missing").output;
  std::vector<const char*> tried = {"socket", "fork", "ptrace", "code", "protect", "exec"};
#if defined(__x86_64__)
  tried.push_back("x32");
  if (has_i386_calls()) tried.push_back("i386");
#endif
  for (const char* what : tried) {
    const Probed run = probe(what);
    EXPECT_EQ(run.fault, "ended: it made a system call that it may not make") << what;
    EXPECT_EQ(run.exit_code, -1) << what;
  }
  // What libdw tries is refused, and no more.
  for (const char* what : {"open", "create"}) {
    const Probed run = probe(what);
    EXPECT_EQ(run.exit_code, 21) << what << ": " << run.fault;
  }
  EXPECT_NE(::access("/tmp/confined_probe", F_OK), 0);
}

TEST(ChildProgram, EndsAtItsLimitOfCpuTime) {
  // Where others use the processors too, its share of them takes longer.
  const Probed run = probe("spin", milliseconds(800'000));
  EXPECT_EQ(run.fault, "ended: more than " + std::to_string(kLookupCpuSeconds) + " s of CPU time");
}

// Both were said to have used too much CPU time.
TEST(ChildProgram, TellsOtherEndsFromTheCpuLimit) {
  const Probed mute = probe("mute");
  EXPECT_EQ(mute.fault, "ended: it closed its output and continued");
  EXPECT_EQ(mute.exit_code, -1);
  EXPECT_EQ(probe("killed").fault, "ended: someone killed it, or memory ran out");
}

TEST(ChildProgram, EndsAtItsLimitOfMemory) {
  if (!is_confined()) GTEST_SKIP() << probe("missing").output;
  EXPECT_EQ(probe("allocate").fault, "ended: more than 1024 MB of memory");
}

TEST(ChildProgram, EndsAtItsDeadline) {
  EXPECT_EQ(probe("sleep", milliseconds(1'000)).fault, "ended: more than 1 s");
}

TEST(ChildProgram, EndsAtItsLimitOfOutput) {
  const Probed run = probe("flood", milliseconds(60'000), 2u << 20);
  EXPECT_EQ(run.fault, "ended: more than 2 MB of output");
  EXPECT_LE(run.output.size(), 2u << 20);
}

TEST(ChildProgram, MaySayAsMuchAsItsLimitOfOutput) {
  const std::vector<uint8_t> request(1'000, 'x');
  const auto echo = [&](uint64_t output_bytes) {
    size_t echoed = 0;
    const auto ending =
        run_child({"/bin/cat"}, request, {milliseconds(60'000), output_bytes, nullptr},
                  [&echoed](Bytes bytes) {
                    echoed += bytes.size();
                    return Status();
                  });
    EXPECT_TRUE(ending.ok());
    EXPECT_EQ(echoed == request.size(), ending->fault.empty());
    return ending->fault;
  };
  EXPECT_EQ(echo(1'000), "");
  EXPECT_EQ(echo(999), "ended: more than 0 MB of output");
}

// However it ended: nothing is left that runs on, or that no one has waited for.
TEST(ChildProgram, LeavesNoChildBehind) {
  (void)probe("answer");
  (void)probe("sleep", milliseconds(1));
  (void)probe("flood", milliseconds(60'000), 1'000);
  (void)probe("mute");
  (void)run_child({CONFINED_PROBE}, {}, {milliseconds(60'000), 1'000, nullptr},
                  [](Bytes) { return Status(Error{Code::kIo, "no"}); });
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ChildProgram, CrashIsReported) {
  if (!is_confined()) GTEST_SKIP() << probe("missing").output;
  // abort() sends a signal, which is one of the system calls that it may not make.
  EXPECT_NE(probe("crash").fault, "");
}

TEST(ChildProgram, StopsWhenCancelled) {
  const std::atomic<bool> stop{true};
  const std::string what = "sleep";
  const auto ending =
      run_child({CONFINED_PROBE}, {reinterpret_cast<const uint8_t*>(what.data()), what.size()},
                {milliseconds(60'000), 1u << 20, &stop}, [](Bytes) { return Status(); });
  ASSERT_FALSE(ending.ok());
  EXPECT_EQ(ending.code(), Code::kCancelled);
}

TEST(ChildProgram, ReportsMissingProgramsAsNotFound) {
  const auto ending = run_child({"/nowhere/collect-symbolizer"}, {},
                                {milliseconds(1'000), 1, nullptr}, [](Bytes) { return Status(); });
  ASSERT_FALSE(ending.ok());
  EXPECT_EQ(ending.code(), Code::kNotFound);
}

// A kernel that has no handles of processes.
TEST(ChildProgram, WithoutPidfdTheEndIsWaitedFor) {
  EXPECT_EQ(fakes::without_system_call(
                SYS_pidfd_open,
                [] {
                  if (probe("answer").output != "done") return 1;
                  if (probe("exit3").exit_code != 3) return 2;
                  if (probe("sleep", milliseconds(1)).fault != "ended: more than 0 s") return 3;
                  return ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD ? 0 : 4;
                }),
            0);
}

// In pieces, whenever it has room for more.
TEST(ChildProgram, LargeRequestIsTakenWhole) {
  std::vector<uint8_t> request(4u << 20);
  for (size_t at = 0; at < request.size(); ++at) request[at] = static_cast<uint8_t>(at >> 8);
  std::vector<uint8_t> echoed;
  const auto ending = run_child({"/bin/cat"}, request, {milliseconds(60'000), 8u << 20, nullptr},
                                [&echoed](Bytes bytes) {
                                  echoed.insert(echoed.end(), bytes.begin(), bytes.end());
                                  return Status();
                                });
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->fault, "");
  EXPECT_TRUE(echoed == request);
}

// A child that takes nothing of a large request must not hold its parent up, nor end it (SIGPIPE).
TEST(ChildProgram, LargeRequestToADeafChildIsNoFault) {
  const std::vector<uint8_t> request(4u << 20, 'x');
  const auto ending = run_child({"/bin/true"}, request, {milliseconds(20'000), 1u << 20, nullptr},
                                [](Bytes) { return Status(); });
  ASSERT_TRUE(ending.ok());
  EXPECT_EQ(ending->fault, "");
}

}  // namespace
}  // namespace collect::symbolize::test
