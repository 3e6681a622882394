// The processes of a run: signals, the program, the collector of its own, and what is seen of them.
#include <elf.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <csignal>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/program/preload_check.h"
#include "daemon/ctl/record/program/run_environment.h"
#include "daemon/ctl/record/run/embedded_daemon.h"
#include "tests/child/forked_child.h"

namespace collect::ctl {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ProcessesOfARun : public ::testing::Test {
 protected:
  ProcessesOfARun() {
    std::string pattern = fs::temp_directory_path() / "processes_XXXXXX";
    directory_ = fs::canonical(::mkdtemp(pattern.data()));
    ::setenv("NOTES", directory_.c_str(), 1);
    // Under nohup, or in the background of a script, these are ignored, and a shell takes none that
    // are.
    for (const int number : {SIGHUP, SIGINT, SIGQUIT}) ::signal(number, SIG_DFL);
  }
  ~ProcessesOfARun() override {
    ::unsetenv("NOTES");
    fs::remove_all(directory_);
  }

  std::string put(const std::string& name, const std::string& text, mode_t mode = 0700) {
    const std::string path = directory_ / name;
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::string noted(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(directory_ / name).rdbuf();
    return text.str();
  }
  Result<pid_t> start(const std::string& script) {
    return start_program("/bin/sh", {"sh", "-c", script}, own_environment(), signals_);
  }

  fs::path directory_;
  JobSignals signals_;
};

constexpr int kWaited[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

// ---- signals

TEST_F(ProcessesOfARun, SignalsWaitUntilTheyAreAskedFor) {
  EXPECT_EQ(signals_.wait(milliseconds(1)).number, 0);
  for (const int number : kWaited) {
    ::kill(::getpid(), number);
    Signal signal = signals_.wait(milliseconds(1000));
    EXPECT_EQ(signal.number, number);
    EXPECT_TRUE(signal.from_user);
    ::raise(number);
    signal = signals_.wait(milliseconds(1000));
    EXPECT_EQ(signal.number, number);
    EXPECT_TRUE(signal.from_user) << "by a thread";
    ::sigqueue(::getpid(), number, {});
    signal = signals_.wait(milliseconds(1000));
    EXPECT_TRUE(signal.number == number && signal.from_user) << "with a value";
  }
  EXPECT_EQ(signals_.wait(milliseconds(1)).number, 0);
  const auto child = start("exit 0");
  ASSERT_TRUE(child.ok());
  const Signal ended = signals_.wait(milliseconds(20'000));
  EXPECT_EQ(ended.number, SIGCHLD);
  EXPECT_FALSE(ended.from_user);
  EXPECT_EQ(wait_for_program(*child, signals_), 0);
}

TEST_F(ProcessesOfARun, PipeWithoutAReaderIsNoEnd) {
  ::raise(SIGPIPE);
  EXPECT_EQ(signals_.wait(milliseconds(1)).number, 0) << "it is not waited for";
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  siginfo_t info;
  const timespec none{};
  EXPECT_EQ(::sigtimedwait(&pipe, &info, &none), SIGPIPE) << "it was held back";
}

TEST_F(ProcessesOfARun, MaskIsAsBeforeAndThePrograms) {
  const auto blocked = [] {
    sigset_t now;
    ::pthread_sigmask(SIG_SETMASK, nullptr, &now);
    std::string text;
    for (int number = 1; number < 32; ++number) {
      if (sigismember(&now, number) == 1) text += std::to_string(number) + " ";
    }
    return text;
  };
  const std::string with_one = blocked();
  EXPECT_THAT(with_one, HasSubstr(std::to_string(SIGPIPE)));
  {
    const JobSignals more;
    EXPECT_EQ(blocked(), with_one);
    EXPECT_EQ(sigismember(&more.original_mask(), SIGINT), 1);
  }
  EXPECT_EQ(blocked(), with_one);
  EXPECT_EQ(sigismember(&signals_.original_mask(), SIGINT), 0);
  const auto child = start("exec grep SigBlk /proc/self/status > \"$NOTES/mask\"");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(wait_for_program(*child, signals_), 0);
  EXPECT_EQ(noted("mask"), "SigBlk:\t0000000000000000\n");
}

TEST_F(ProcessesOfARun, ParentThatIgnoresItsChildrenTakesNoExitCode) {
  ::signal(SIGCHLD, SIG_IGN);
  const JobSignals signals;
  const auto child = start("exit 7");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(wait_for_program(*child, signals_), 7);
}

// ---- the program

TEST_F(ProcessesOfARun, NamesProgramsThatCannotStart) {
  const auto started = [&](const std::string& path) {
    return start_program(path, {path}, own_environment(), signals_);
  };
  EXPECT_EQ(started(directory_ / "none").code(), Code::kNotFound);
  EXPECT_THAT(started(directory_ / "none").error().message, HasSubstr("/none"));
  const auto data = started(put("data", "no program"));
  EXPECT_EQ(data.code(), Code::kPermission);
  EXPECT_EQ(data.error().message, (directory_ / "data").string() +
                                      ": is neither a program nor a script that begins with #!");
}

TEST_F(ProcessesOfARun, EveryEndIsAShellsCode) {
  const auto ended = [&](const std::string& script) {
    const auto child = start(script);
    EXPECT_TRUE(child.ok());
    return wait_for_program(*child, signals_);
  };
  EXPECT_EQ(ended("exit 0"), 0);
  EXPECT_EQ(ended("exit 255"), 255);
  EXPECT_EQ(ended("kill -9 $$"), 128 + 9);
  ASSERT_EQ(::mkfifo((directory_ / "pipe").c_str(), 0600), 0);
  const auto child = start("read line < \"$NOTES/pipe\"; exit 3");  // no one writes
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(exit_code_if_ended(*child), std::nullopt);
  EXPECT_EQ(wait_bounded(*child, signals_, milliseconds(0)), std::nullopt);
  ::kill(*child, SIGKILL);
  EXPECT_EQ(wait_bounded(*child, signals_, milliseconds(60'000)), 128 + 9);
  EXPECT_EQ(exit_code_if_ended(*child), std::nullopt) << "it is known once";
  EXPECT_FALSE(is_alive(*child));
  EXPECT_TRUE(is_alive(::getpid()));
  EXPECT_TRUE(is_alive(1));
}

// Who tells us to end tells the program.
TEST_F(ProcessesOfARun, SignalsOfOthersReachTheProgram) {
  for (const int number : kWaited) {
    const std::string name = std::to_string(number);
    const auto child =
        start("trap 'exit 9' " + name + "; kill -" + name + " $PPID; while :; do sleep 0.02; done");
    ASSERT_TRUE(child.ok());
    EXPECT_EQ(wait_for_program(*child, signals_), 9) << number;
  }
}

TEST_F(ProcessesOfARun, StringsEndAsExecWantsIt) {
  const std::vector<std::string> words = {"a", ""};
  const std::vector<char*> pointers = c_strings(words);
  ASSERT_EQ(pointers.size(), 3u);
  EXPECT_STREQ(pointers[0], "a");
  EXPECT_STREQ(pointers[1], "");
  EXPECT_EQ(pointers[2], nullptr);
}

// ---- the collector of its own

// Notes what it is given, is ready, and ends with CODE.
constexpr char kDaemon[] = R"(#!/bin/sh
printf '%s\n' "$@" > "$NOTES/arguments"
echo $$ > "$NOTES/pid"
readlink /proc/$$/fd/0 > "$NOTES/input"
cut -d' ' -f5 /proc/$$/stat > "$NOTES/group"
cut -d' ' -f6 /proc/$$/stat > "$NOTES/session"
grep SigBlk /proc/self/status > "$NOTES/mask"
[ -e /proc/$$/fd/50 ] && echo leaked > "$NOTES/leaked"
echo "on standard output"
echo "on standard error" >&2
trap 'exit ${CODE:-0}' TERM
printf '{"ingest":"127.0.0.1:1",\n' >&3
printf '"control":"127.0.0.1:2"}\n' >&3
for i in $(seq 3000); do sleep 0.02; done
)";

class EmbeddedDaemonOf : public ProcessesOfARun {
 protected:
  Result<std::unique_ptr<EmbeddedDaemon>> start_daemon(const std::string& script,
                                                       milliseconds bound = milliseconds(0),
                                                       const std::vector<std::string>& more = {}) {
    program_ = put("collectord", script);
    return EmbeddedDaemon::start(program_, root(), "127.0.0.1:0", more, bound, signals_);
  }
  std::string root() const { return directory_ / "traces/below"; }
  std::string log() const { return noted("traces/below/collectord.log"); }

  std::string program_;
};

TEST_F(EmbeddedDaemonOf, GetsItsFlagsAndNothingOfOurs) {
  ASSERT_EQ(::dup2(1, 50), 50);
  auto daemon = start_daemon(kDaemon, milliseconds(0), {"--adb", "off"});
  ::close(50);
  ASSERT_TRUE(daemon.ok()) << to_string(daemon.error());
  EXPECT_EQ((*daemon)->addresses().ingest, "127.0.0.1:1");
  EXPECT_EQ((*daemon)->addresses().control, "127.0.0.1:2");
  EXPECT_EQ(noted("arguments"), "--root\n" + root() +
                                    "\n--ingest\n127.0.0.1:0\n--control\n127.0.0.1:0\n"
                                    "--ready-fd\n3\n--adb\noff\n");
  EXPECT_EQ(noted("input"), "/dev/null\n");
  EXPECT_EQ(noted("group"), noted("pid")) << "the terminal's signals are not for it";
  EXPECT_EQ(noted("session"), std::to_string(::getsid(0)) + "\n") << "where the program runs, too";
  EXPECT_EQ(noted("mask"), "SigBlk:\t0000000000000000\n");
  EXPECT_FALSE(fs::exists(directory_ / "leaked"));
  EXPECT_EQ(log(), "on standard output\non standard error\n");
  EXPECT_TRUE((*daemon)->stop(signals_).ok());
  EXPECT_FALSE(is_alive(std::stoi(noted("pid"))));
  EXPECT_TRUE((*daemon)->stop(signals_).ok()) << "it has ended";
}

TEST_F(EmbeddedDaemonOf, AnotherExitCodeIsSaid) {
  ::setenv("CODE", "3", 1);
  auto daemon = start_daemon(kDaemon);
  ::unsetenv("CODE");
  ASSERT_TRUE(daemon.ok());
  const Status stopped = (*daemon)->stop(signals_);
  EXPECT_EQ(stopped.code(), Code::kIo);
  EXPECT_EQ(stopped.error().message,
            "collectord ended with exit code 3; see " + root() + "/collectord.log");
}

TEST_F(EmbeddedDaemonOf, WhyItDidNotStartIsWhatItSaid) {
  auto daemon = start_daemon("#!/bin/sh\necho 'of an earlier run'\nexit 2\n");
  ASSERT_FALSE(daemon.ok());
  EXPECT_EQ(daemon.code(), Code::kUnavailable);
  EXPECT_EQ(daemon.error().message, program_ + " did not start: of an earlier run");
  daemon = start_daemon("#!/bin/sh\necho 'the disk'; echo 'is on fire' >&2; echo\nexit 2\n");
  EXPECT_EQ(daemon.error().message, program_ + " did not start: the disk\nis on fire");
  daemon = start_daemon("#!/bin/sh\nexit 2\n");
  EXPECT_EQ(daemon.error().message, program_ + " did not start; see " + root() + "/collectord.log");
  daemon = start_daemon("#!/bin/sh\nhead -c 3000 /dev/zero | tr '\\0' x\nexit 2\n");
  EXPECT_EQ(daemon.error().message, program_ + " did not start: " + std::string(2000, 'x'));
  // Much that is no answer, and it continues.
  daemon = start_daemon(
      "#!/bin/sh\nhead -c 5000 /dev/zero | tr '\\0' ' ' >&3\necho $$ > \"$NOTES/pid\"\n"
      "exec sleep 600\n");
  EXPECT_EQ(daemon.code(), Code::kUnavailable);
}

TEST_F(EmbeddedDaemonOf, ItsAnswerHasALimit) {
  const std::string head = R"({"ingest":"127.0.0.1:1","control":"127.0.0.1:2")";
  const auto answers = [&](size_t bytes) {
    const std::string answer = head + std::string(bytes - head.size() - 2, ' ') + "}";
    return start_daemon("#!/bin/sh\necho '" + answer + "' >&3\nexec sleep 60\n").ok();
  };
  EXPECT_TRUE(answers(kMaxReadyBytes));
  EXPECT_FALSE(answers(kMaxReadyBytes + 2)) << "it is cut within the brackets";
}

TEST_F(EmbeddedDaemonOf, GoesAwayWithItsObject) {
  auto daemon = start_daemon(kDaemon);
  ASSERT_TRUE(daemon.ok());
  const pid_t pid = std::stoi(noted("pid"));
  EXPECT_TRUE(is_alive(pid));
  daemon->reset();
  EXPECT_FALSE(is_alive(pid));
}

TEST_F(EmbeddedDaemonOf, RootIsOneRunsAtATime) {
  auto daemon = start_daemon(kDaemon);
  ASSERT_TRUE(daemon.ok());
  auto other = start_daemon(kDaemon);
  EXPECT_EQ(other.code(), Code::kAlreadyExists);
  EXPECT_EQ(other.error().message,
            "another run records into " + root() + "; name another directory with -o");
  for (const int number : kWaited) {
    ::raise(number);
    other = start_daemon(kDaemon, milliseconds(60'000));
    EXPECT_EQ(other.code(), Code::kCancelled) << number;
  }
  EXPECT_EQ(other.error().message, "interrupted");
  EXPECT_TRUE((*daemon)->stop(signals_).ok());
  other = start_daemon(kDaemon);
  EXPECT_TRUE(other.ok());
}

TEST_F(EmbeddedDaemonOf, WaitsForARootThatIsLeft) {
  fs::create_directories(root());
  const std::string path = root() + "/collectord.log";
  const child::ForkedChild holder([&](const child::ForkedChild::Ready& ready) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (::flock(file, LOCK_EX) == 0) ready();
    ::usleep(100'000);
    return 0;
  });
  ASSERT_TRUE(holder.was_ready());
  ::raise(SIGCHLD);  // which ends no wait
  auto daemon = start_daemon(kDaemon, milliseconds(60'000));
  EXPECT_TRUE(daemon.ok()) << to_string(daemon.error());
}

class PreloadCheck : public ProcessesOfARun {
 protected:
  PreloadCheck() {
    std::memcpy(header_.e_ident, ELFMAG, SELFMAG);
    header_.e_ident[EI_CLASS] = ELFCLASS64;
    header_.e_phoff = sizeof header_;
    header_.e_phentsize = sizeof(Elf64_Phdr);
  }
  // Of a program with these segments.
  std::string said_of(const std::vector<uint32_t>& types, size_t cut = 0) {
    std::string bytes(reinterpret_cast<const char*>(&header_), sizeof header_);
    for (const uint32_t type : types) {
      Elf64_Phdr segment{};
      segment.p_type = type;
      bytes.append(reinterpret_cast<const char*>(&segment), sizeof segment);
    }
    bytes.resize(bytes.size() - cut);
    return why_no_preload(put("program", bytes));
  }
  std::string said_of_loads(size_t count) {
    header_.e_phnum = static_cast<Elf64_Half>(count);
    return said_of(std::vector<uint32_t>(count, PT_LOAD));
  }

  Elf64_Ehdr header_{};
};

TEST_F(PreloadCheck, ProgramWithoutInterpreterIsStatic) {
  constexpr char kStatic[] = "is linked statically";
  EXPECT_EQ(said_of_loads(1), kStatic);
  EXPECT_EQ(said_of_loads(512), kStatic);
  EXPECT_EQ(said_of_loads(513), "") << "not judged";
  EXPECT_EQ(said_of_loads(0), "");
  header_.e_phnum = 3;
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_INTERP}), "");
  EXPECT_EQ(said_of({PT_INTERP, PT_LOAD, PT_LOAD}), "");
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD}), kStatic);
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD, PT_INTERP}), kStatic) << "it is none of its own";
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD}, 1), "") << "cut off";
  header_.e_phentsize = sizeof(Elf64_Phdr) + 1;
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD}), "");
  header_.e_phentsize = sizeof(Elf64_Phdr);
  header_.e_ident[EI_CLASS] = ELFCLASS32;
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD}), "");
  header_.e_ident[EI_CLASS] = ELFCLASS64;
  header_.e_ident[3] = 'f';
  EXPECT_EQ(said_of({PT_LOAD, PT_LOAD, PT_LOAD}), "");
  EXPECT_EQ(why_no_preload(put("script", "#!/bin/sh\n")), "");
  EXPECT_EQ(why_no_preload(directory_ / "none"), "");
  EXPECT_EQ(why_no_preload(directory_), "");
}

TEST_F(PreloadCheck, ForeignRightsAreNoneOfOurs) {
  header_.e_phnum = 1;
  (void)said_of({PT_INTERP});
  const std::string path = directory_ / "program";
  ::chmod(path.c_str(), 04755);
  EXPECT_EQ(why_no_preload(path), "") << "of the caller's own it gives no one other rights";
  ::chmod(path.c_str(), 02755);
  EXPECT_EQ(why_no_preload(path), "");
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(::chown(path.c_str(), 1, 0), 0);
  ::chmod(path.c_str(), 04755);
  EXPECT_EQ(why_no_preload(path), "is set-user-id");
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(why_no_preload(path), "");
  ASSERT_EQ(::chown(path.c_str(), 0, 1), 0);
  ::chmod(path.c_str(), 02755);
  EXPECT_EQ(why_no_preload(path), "is set-group-id");
  ::chmod(path.c_str(), 0755);
  EXPECT_EQ(why_no_preload(path), "");
}

}  // namespace
}  // namespace collect::ctl
