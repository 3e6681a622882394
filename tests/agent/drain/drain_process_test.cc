// The drain process of a program that links the agent in, against a scripted collector. The program
// is a forked child of the test, so that it can end in any way.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>

#include "agent/drain/link/control.h"
#include "collect/agent.h"
#include "formats/atf/layout.h"
#include "tests/agent/scripted_collector.h"
#include "tests/child/forked_child.h"
#include "tests/fakes/sanitized.h"

namespace collect::agent {
namespace {

using wire::FrameType;

constexpr uint64_t kPairs = 50000;
constexpr int kNotStarted = 90;

void called_function() {}

void make_events(uint64_t pairs) {
  const auto* function = reinterpret_cast<const void*>(&called_function);
  for (uint64_t i = 0; i < pairs; ++i) {
    collect_enter(function, function);
    collect_exit(function, function);
  }
}

class DrainProcessEndTest : public testing::Test {
 protected:
  // `act` runs in the program, once its agent has started; its value is the exit code.
  void start_program(
      const std::function<int()>& act, uint32_t full = COLLECT_FULL_DROP,
      const std::function<void()>& before = [] {}) {
    program.emplace([&] {
      before();
      return start_agent(full) ? act() : kNotStarted;
    });
  }

  bool start_agent(uint32_t full) const {
    const std::string address = collector.address();
    collect_agent_options options = more_options;
    options.struct_bytes = sizeof options;
    options.connect = address.c_str();
    options.full_policy = full;
    options.buffer_mb = full == COLLECT_FULL_OVERWRITE ? 1 : 16;
    options.drain = COLLECT_DRAIN_PROCESS;
    return collect_agent_start(&options) == 0;
  }

  std::string end_of_program() { return program->wait().describe(); }

  // Everything, up to the end of the recording.
  wire::RecordingEnd take_all() {
    collector.welcome_pair();
    wire::RecordingEnd end;
    for (auto frame = collector.take(); frame; frame = collector.take()) {
      collector.send_ack();
      if (frame->type != FrameType::kRecordingEnd) continue;
      EXPECT_TRUE(end.ParseFromString(frame->body));
      wire::Ack sealed = collector.ack();
      sealed.set_recording_ended(end.recording());
      collector.control.send(FrameType::kAck, sealed);
      EXPECT_TRUE(collector.control.next_of(FrameType::kBye));
      break;
    }
    return end;
  }

  uint64_t stored() {
    uint64_t records = 0;
    for (const auto& [stream_id, end] : collector.closed) {
      EXPECT_EQ(collector.lane(stream_id, 0).next, end.index_count());
      EXPECT_EQ(end.index_lost(), 0u);
      records += end.index_count();
    }
    return records;
  }

  ScriptedCollector collector;
  collect_agent_options more_options{};
  std::optional<child::ForkedChild> program;
};

TEST_F(DrainProcessEndTest, TellsHowTheProgramWasKilled) {
  start_program([] {
    make_events(kPairs);
    return raise(SIGKILL);
  });
  // It is gone, and waited for, before anybody takes what it recorded.
  EXPECT_EQ(end_of_program(), "signal 9");
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(stored(), 2 * kPairs);
  EXPECT_EQ(end.reason(), "killed by SIGKILL");
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::SIGNALED);
  EXPECT_EQ(end.process_end().signal(), static_cast<uint32_t>(SIGKILL));
  EXPECT_EQ(collector.data_hello.pid(), static_cast<uint32_t>(program->pid()));
}

TEST_F(DrainProcessEndTest, TellsTheExitCode) {
  start_program([] {
    make_events(kPairs);
    return 200;
  });
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(end_of_program(), "exit 200");
  EXPECT_EQ(stored(), 2 * kPairs);
  EXPECT_EQ(end.reason(), "exit");
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
  EXPECT_EQ(end.process_end().exit_code(), 200);
}

TEST_F(DrainProcessEndTest, IsNoChildOfTheProgram) {
  start_program([] {
    make_events(kPairs);
    const bool none = waitpid(-1, nullptr, __WALL) == -1 && errno == ECHILD;
    const pid_t drain_process = g_control.drain_pid.load();
    const bool apart = drain_process > 0 && getpgid(drain_process) != getpgid(0);
    // Schedulers share processors out to sessions: one of its own may get none for seconds.
    const bool shares_session = getsid(drain_process) == getsid(0);
    return none && apart && shares_session ? 0 : 1;
  });
  take_all();
  EXPECT_EQ(end_of_program(), "exit 0");
}

TEST_F(DrainProcessEndTest, AnotherOneComesWithTheNextStart) {
  start_program([this] {
    make_events(kPairs);
    const pid_t first = g_control.drain_pid.load();
    collect_agent_stop(20000);
    if (!start_agent(COLLECT_FULL_DROP)) return 1;
    make_events(kPairs);
    return g_control.drain_pid.load() != first ? 0 : 2;
  });
  EXPECT_FALSE(take_all().has_process_end());
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(end_of_program(), "exit 0");
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
  EXPECT_EQ(stored(), 4 * kPairs);
}

// A child that went through no handler of fork's shares the rings, and must not write to them.
TEST_F(DrainProcessEndTest, ChildByTheSystemCallAloneWritesNothing) {
  start_program([] {
    make_events(kPairs);
    const long child = syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr);
    if (child == 0) {
      make_events(kPairs);
      collect_agent_stop(1000);
      for (;;) syscall(SYS_exit_group, 0);
    }
    int status = -1;
    waitpid(static_cast<pid_t>(child), &status, 0);
    make_events(kPairs);
    return status;
  });
  take_all();
  EXPECT_EQ(end_of_program(), "exit 0");
  EXPECT_EQ(stored(), 4 * kPairs);
}

TEST_F(DrainProcessEndTest, ProgramContinuesWithoutItsDrainProcess) {
  // With overwrite both sides take a lock; the program must not wait for one that no one gives
  // back.
  for (const uint32_t full : {COLLECT_FULL_DROP, COLLECT_FULL_OVERWRITE}) {
    start_program(
        [] {
          make_events(kPairs);
          if (kill(g_control.drain_pid.load(), SIGKILL) != 0) return 1;
          make_events(10 * kPairs);
          collect_agent_stats stats{};
          stats.struct_bytes = sizeof stats;
          collect_agent_stop(500);
          collect_agent_get_stats(&stats);
          return stats.recording == 0 && stats.connected == 0 ? 0 : 2;
        },
        full);
    EXPECT_EQ(end_of_program(), "exit 0");
  }
}

// A program that was built before there was a choice does not have it in its options.
TEST_F(DrainProcessEndTest, OptionsOfAnEarlierHeaderMeanAThread) {
  program.emplace([this] {
    const std::string address = collector.address();
    collect_agent_options options{};
    options.struct_bytes = offsetof(collect_agent_options, drain);
    options.connect = address.c_str();
    options.drain = COLLECT_DRAIN_PROCESS;  // not to be looked at
    if (collect_agent_start(&options) != 0) return kNotStarted;
    const bool by_drain_process = g_control.drainer.load() == Drainer::kDrainProcess;
    make_events(kPairs);
    return by_drain_process ? 1 : 0;
  });
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(end_of_program(), "exit 0");
  if (fakes::kSanitized) return;  // its own _exit comes before the agent's in a static program
  // A thread can tell the exit code too, if the program ends in order.
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::EXITED);
  EXPECT_EQ(stored(), 2 * kPairs);
}

// Memory that the program had at the start is not held by the copy.
TEST_F(DrainProcessEndTest, HoldsNothingOfTheProgramsMemory) {
  if (fakes::kSanitized) GTEST_SKIP() << "all memory stays under a sanitizer";
  constexpr size_t kProgramBytes = 256 << 20;
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  start_program(
      [&report] {
        const int32_t drain_process = g_control.drain_pid.load();
        if (write(report[1], &drain_process, sizeof drain_process) != sizeof drain_process)
          return 1;
        for (;;) pause();
      },
      COLLECT_FULL_DROP,
      [] {
        void* const memory = mmap(nullptr, kProgramBytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        std::memset(memory, 1, kProgramBytes);
      });
  int32_t drain_process = 0;
  ASSERT_EQ(read(report[0], &drain_process, sizeof drain_process), ssize_t{sizeof drain_process});
  close(report[1]);
  std::ifstream statm("/proc/" + std::to_string(drain_process) + "/statm");
  uint64_t size_pages = 0;
  uint64_t resident_pages = 0;
  statm >> size_pages >> resident_pages;
  EXPECT_GT(resident_pages, 0u);
  EXPECT_LT(resident_pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)), kProgramBytes / 4);
  // Its end of the pipe is closed: ours is the last.
  program->send_signal(SIGKILL);
  program->wait();
  char nothing = 0;
  EXPECT_EQ(read(report[0], &nothing, 1), 0);
  close(report[0]);
  take_all();
}

// Runs until it is killed, and says which process drains it.
class DrainProcessTest : public DrainProcessEndTest {
 protected:
  void start_and_look(const std::function<void()>& before) {
    int report[2];
    ASSERT_EQ(pipe(report), 0);
    start_program(
        [&report] {
          make_events(kPairs);
          const int32_t process = g_control.drain_pid.load();
          if (write(report[1], &process, sizeof process) != sizeof process) return 1;
          for (;;) pause();
        },
        COLLECT_FULL_DROP, before);
    close(report[1]);
    ASSERT_EQ(read(report[0], &drain_process, sizeof drain_process), ssize_t{sizeof drain_process});
    close(report[0]);
  }
  void end() {
    program->send_signal(SIGKILL);
    program->wait();
    take_all();
    EXPECT_EQ(stored(), 2 * kPairs);
  }
  std::filesystem::path proc() const { return "/proc/" + std::to_string(drain_process); }
  std::string read_of(const char* name) const {
    std::ifstream file(proc() / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::map<int, std::string> descriptors() const {
    std::map<int, std::string> links;
    for (const auto& entry : std::filesystem::directory_iterator(proc() / "fd")) {
      std::error_code gone;  // it was closed meanwhile
      const auto target = std::filesystem::read_symlink(entry.path(), gone);
      if (!gone) links[std::stoi(entry.path().filename())] = target;
    }
    return links;
  }

  int32_t drain_process = 0;
};

TEST_F(DrainProcessTest, HasNothingOfTheProgramsButItsRings) {
  constexpr size_t kLarge = 32 << 20, kSmall = 64 << 10;
  start_and_look([] {
    const int own = memfd_create("of-the-program", 0);
    (void)ftruncate(own, kLarge);
    for (const int fd : {0, 1, 2, 50, 900}) (void)dup2(own, fd);
    // So many that the list of all mappings is read in many pieces.
    for (int i = 0; i < 400; ++i) {
      (void)mmap(nullptr, kSmall, i % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
                 -1, 0);
    }
    void* const shared = mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    void* const anonymous =
        mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    void* const secret =
        mmap(nullptr, kLarge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    // Small ones stay: to take out each would cost a call for each.
    void* const few = mmap(nullptr, kSmall, PROT_READ | PROT_WRITE, MAP_SHARED, own, 0);
    for (void* memory : {shared, anonymous, secret, few}) std::memset(memory, 1, kSmall);
  });
  EXPECT_EQ(read_of("comm"), "collect-drain\n");
  const std::string command_line = read_of("cmdline");
  EXPECT_TRUE(command_line.starts_with(std::string("collect-drain\0", 14))) << command_line;
  EXPECT_EQ(command_line.find_first_not_of('\0', 13), std::string::npos) << "nothing of what was";
  EXPECT_EQ(std::filesystem::read_symlink(proc() / "cwd"), "/");
  EXPECT_NE(read_of("limits").find("Max core file size        0                    0 "),
            std::string::npos);
  const auto open = descriptors();
  for (const int fd : {0, 1, 2}) {
    ASSERT_TRUE(open.contains(fd)) << fd;
    EXPECT_EQ(open.at(fd), "/dev/null") << fd;
  }
  for (const auto& [fd, link] : open) {
    EXPECT_EQ(link.find("of-the-program"), std::string::npos) << fd;
    EXPECT_EQ(link.find("pipe:"), std::string::npos) << fd;
  }
  if (!fakes::kSanitized) {
    EXPECT_EQ(read_of("maps").find("of-the-program"), std::string::npos) << read_of("maps");
  }
  end();
}

// A program that has closed some of them: the drain process has all three, and nothing beside them.
TEST_F(DrainProcessTest, ItsStandardStreamsLeadNowhere) {
  for (const int closed : {0b001, 0b010, 0b100, 0b011, 0b110, 0b101, 0b111}) {
    start_and_look([closed] {
      for (int fd = 0; fd < 3; ++fd) {
        if ((closed >> fd & 1) != 0) (void)close(fd);
      }
    });
    int nowhere = 0;
    for (const auto& [fd, link] : descriptors()) {
      if (link != "/dev/null") continue;
      EXPECT_LT(fd, 3) << closed;
      ++nowhere;
    }
    EXPECT_EQ(nowhere, 3) << closed;
    end();
    collector.closed.clear();
  }
}

// A descriptor that the program has closed stays free for what it opens next.
TEST_F(DrainProcessEndTest, StartTakesNoLowDescriptor) {
  start_program(
      [] {
        const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return next == 0 ? 0 : 1;
      },
      COLLECT_FULL_DROP, [] { (void)close(0); });
  EXPECT_EQ(end_of_program(), "exit 0");
}

// Where the kernel knows it: what is in the file that shows whether the program lives can't be
// run, as some systems demand.
TEST_F(DrainProcessTest, ItsFileInMemoryIsNoProgram) {
  constexpr unsigned kNoExec = 0x0008;
  constexpr int kSealExec = 0x0020;
  const auto known = static_cast<int>(syscall(SYS_memfd_create, "probe", kNoExec));
  if (known < 0) GTEST_SKIP() << "this kernel does not know it";
  close(known);
  start_and_look([] {});
  int found = 0;
  for (const auto& [fd, link] : descriptors()) {
    if (link.find("collect-alive") == std::string::npos) continue;
    const int same = open((proc() / "fd" / std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC);
    ASSERT_GE(same, 0);
    EXPECT_NE(fcntl(same, F_GET_SEALS) & kSealExec, 0);
    close(same);
    ++found;
  }
  EXPECT_EQ(found, 1);
  end();
}

// What the drain process sees of a program that is stopped, and continues.
TEST_F(DrainProcessTest, TellsOfAStop) {
  start_and_look([] {});
  collector.welcome_pair(false, 60'000);
  wire::Stalls stalls;
  // One that is too short for two looks is not seen.
  for (int i = 0; i < 100 && stalls.stalls_size() == 0; ++i) {
    program->send_signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(waitpid(program->pid(), &status, WUNTRACED), program->pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    usleep(50'000);
    program->send_signal(SIGCONT);
    usleep(50'000);
    pollfd coming{collector.data.fd(), POLLIN, 0};
    while (stalls.stalls_size() == 0 && poll(&coming, 1, 0) == 1) {
      const auto frame = collector.take();
      ASSERT_TRUE(frame);
      if (frame->type != FrameType::kStalls) continue;
      ASSERT_TRUE(stalls.ParseFromString(frame->body));
    }
  }
  ASSERT_GT(stalls.stalls_size(), 0);
  const wire::Stall& stall = stalls.stalls(0);
  EXPECT_EQ(stall.kind(), wire::Stall::STOPPED);
  EXPECT_EQ(stall.stream_id(), 0u);
  EXPECT_LT(stall.first_ns(), stall.last_ns());
  collector.control.close();
  collector.data.close();
  program->send_signal(SIGKILL);
  program->wait();
}

// Paths that are relative mean what they mean in the program.
TEST_F(DrainProcessTest, StaysWhereTheProgramIsForRelativePaths) {
  std::string pattern = std::filesystem::temp_directory_path() / "drain_process_XXXXXX";
  const std::filesystem::path here = std::filesystem::canonical(::mkdtemp(pattern.data()));
  const auto go_there = [&] { std::filesystem::current_path(here); };
  for (const bool is_relative : {true, false}) {
    const std::string spool = is_relative ? "." : here.string();
    more_options.spool = spool.c_str();
    start_and_look(go_there);
    EXPECT_EQ(std::filesystem::read_symlink(proc() / "cwd"), is_relative ? here : "/");
    end();
    collector.closed.clear();
  }
  std::filesystem::remove_all(here);
}

#if defined(__x86_64__)
constexpr uint32_t kThisArch = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kThisArch = AUDIT_ARCH_AARCH64;
#endif

void forbid(long system_call) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kThisArch, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(system_call), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof filter / sizeof filter[0], filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(kNotStarted);
  }
}

// Where the system does not allow a drain process, a thread drains.
class ForbiddenCallTest : public DrainProcessEndTest, public testing::WithParamInterface<long> {};

TEST_P(ForbiddenCallTest, ThreadDrainsInstead) {
  start_program(
      [] {
        if (g_control.drainer.load() == Drainer::kDrainProcess) return 1;
        make_events(kPairs);
        collect_agent_stop(20000);
        return 0;
      },
      COLLECT_FULL_DROP, [] { forbid(GetParam()); });
  take_all();
  EXPECT_EQ(end_of_program(), "exit 0");
  EXPECT_EQ(stored(), 2 * kPairs);
}

INSTANTIATE_TEST_SUITE_P(SystemCalls, ForbiddenCallTest,
                         testing::Values(SYS_memfd_create, SYS_pidfd_open, SYS_clone));

// Before Linux 6.15 the system tells only as long as no one has waited for the process.
TEST_F(DrainProcessEndTest, OlderSystemTellsHowItEndedToo) {
  start_program(
      [] {
        make_events(kPairs);
        return raise(SIGTERM);
      },
      COLLECT_FULL_DROP, [] { forbid(SYS_ioctl); });
  const wire::RecordingEnd end = take_all();
  EXPECT_EQ(end_of_program(), "signal 15");
  EXPECT_EQ(stored(), 2 * kPairs);
  EXPECT_EQ(end.process_end().how(), wire::ProcessEnd::SIGNALED);
  EXPECT_EQ(end.process_end().signal(), static_cast<uint32_t>(SIGTERM));
}

}  // namespace
}  // namespace collect::agent
