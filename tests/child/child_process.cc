#include "tests/child/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <mutex>
#include <thread>

extern char** environ;

namespace collect::child {
namespace {

using std::chrono::microseconds;
using std::chrono::steady_clock;

// Where the programs of this test find each other: neither the user's own nor another test's.
std::string runtime_directory() {
  static const Scratch directory;
  return directory.path();
}

std::vector<std::string> merged_environment(const Environment& more) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string text = *line;
    const std::string name = text.substr(0, text.find('='));
    // What the test program was informed about itself is no business of its children.
    if (name.starts_with("COLLECT_") || name == "LD_PRELOAD" || name == "XDG_RUNTIME_DIR" ||
        more.contains(name)) {
      continue;
    }
    lines.push_back(text);
  }
  // Tests count the calls of instrumented functions; library_calls_test.py has the others.
  if (!more.contains("COLLECT_LIBCALLS")) lines.push_back("COLLECT_LIBCALLS=off");
  if (!more.contains("XDG_RUNTIME_DIR")) lines.push_back("XDG_RUNTIME_DIR=" + runtime_directory());
  return lines;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

std::string next_name() {
  static std::atomic<int> number{0};
  return "process_" + std::to_string(number++);
}

// When a test fails: what its processes were, and what they wrote.
class ProcessesOfFailedTests final : public testing::EmptyTestEventListener {
 public:
  struct Process {
    std::string command, folder, output_path, errors_path;
    std::string ending = {};
  };

  // The listener of this test program, which GoogleTest owns.
  static ProcessesOfFailedTests& instance() {
    static auto* const listener = [] {
      auto* made = new ProcessesOfFailedTests;
      testing::UnitTest::GetInstance()->listeners().Append(made);
      return made;
    }();
    return *listener;
  }

  size_t add(Process process) {
    const std::lock_guard lock(mutex_);
    processes_.emplace(++last_number_, std::move(process));
    return last_number_;
  }
  void set_ending(size_t number, const std::string& ending) {
    const std::lock_guard lock(mutex_);
    if (const auto found = processes_.find(number); found != processes_.end()) {
      found->second.ending = ending;
    }
  }

 private:
  static constexpr size_t kShownBytes = 4096;  // of each stream, its end

  // A test that fails keeps its folder, so the files are there.
  void OnTestEnd(const testing::TestInfo& test) override {
    const std::lock_guard lock(mutex_);
    for (auto next = processes_.begin(); next != processes_.end();) {
      const Process& process = next->second;
      if (test.result()->Failed()) show(process);
      const bool goes_on = process.ending.empty();  // it serves several tests
      if (!test.result()->Failed() && !goes_on) {
        std::remove(process.output_path.c_str());
        std::remove(process.errors_path.c_str());
      }
      next = goes_on ? std::next(next) : processes_.erase(next);
    }
    std::cout.flush();
  }
  static void show(const Process& process) {
    std::cout << "$ " << process.command << "\n  ";
    if (!process.folder.empty()) std::cout << "in " << process.folder << ": ";
    std::cout << (process.ending.empty() ? "not waited for" : process.ending) << "\n";
    show("stdout", process.output_path);
    show("stderr", process.errors_path);
  }
  static void show(const char* name, const std::string& path) {
    std::string text = read_text_file(path);
    if (text.empty()) return;
    if (text.size() > kShownBytes) text = "…" + text.substr(text.size() - kShownBytes);
    std::cout << "  " << name << " (" << path << "):\n"
              << text << (text.back() == '\n' ? "" : "\n");
  }

  std::mutex mutex_;  // tests start programs on several threads
  std::map<size_t, Process> processes_;
  size_t last_number_ = 0;
};

}  // namespace

std::string Ending::describe() const {
  if (timed_out) return "killed by the test after its time";
  if (signal != 0) return "signal " + std::to_string(signal);
  return "exit " + std::to_string(exit_code);
}

// ---- Child

Child::~Child() {
  if (!running()) return;
  send_signal(SIGKILL);
  collect_status(0);
}

void Child::set_started(pid_t pid, const std::string& command, const std::string& folder) {
  pid_ = pid;
  number_ = ProcessesOfFailedTests::instance().add({command, folder, output_path_, errors_path_});
}

void Child::set_not_started(const std::string& problem) {
  ADD_FAILURE() << "cannot start " << problem;
  ending_.errors = "not started";
  status_ = -1;
}

bool Child::collect_status(int options) {
  if (status_) return true;
  int status = 0;
  do {
    if (waitpid(pid_, &status, options) != pid_) return false;
  } while (WIFSTOPPED(status));  // where the test traces it
  status_ = status;
  if (WIFEXITED(status)) ending_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
  ending_.output = output();
  ending_.errors = errors();
  ProcessesOfFailedTests::instance().set_ending(number_, ending_.describe());
  return true;
}

bool Child::running() {
  return !collect_status(WNOHANG);
}

void Child::send_signal(int number) const {
  if (!status_) kill(pid_, number);
}

const Ending& Child::wait(seconds limit) {
  const auto deadline = steady_clock::now() + limit;
  for (microseconds pause{100}; running(); pause = std::min(2 * pause, microseconds(2'000))) {
    std::this_thread::sleep_for(pause);
    if (steady_clock::now() <= deadline || !running()) continue;
    ending_.timed_out = true;
    send_signal(SIGKILL);
    collect_status(0);
  }
  return ending_;
}

uint64_t Child::resident_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::string word;
  uint64_t resident_kb = 0;
  while (status >> word) {
    if (word == "VmRSS:") status >> resident_kb;
  }
  return resident_kb * 1024;
}

std::string Child::output() const {
  return read_text_file(output_path_);
}
std::string Child::errors() const {
  return read_text_file(errors_path_);
}

// ---- ChildProcess

ChildProcess::ChildProcess(const std::string& scratch, const Arguments& command,
                           const Environment& more, const Setting& setting) {
  const std::string name = scratch + "/" + next_name();
  if (setting.output < 0) output_path_ = name + ".out";
  if (setting.errors < 0) errors_path_ = name + ".err";
  std::vector<std::string> environment;
  if (setting.inherits_environment) {
    environment = merged_environment(more);
    environment.push_back("TEST_SCRATCH=" + scratch);  // drain_processes() finds its own by it
  }
  std::string words;
  for (const auto& [variable, value] : more) {
    words += variable + "=" + value + " ";
    if (!value.empty()) environment.push_back(variable + "=" + value);
  }
  for (const std::string& argument : command) words += argument + " ";

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const auto give = [&files](int own, int theirs, const std::string& path, int flags) {
    if (own >= 0) {
      posix_spawn_file_actions_adddup2(&files, own, theirs);
    } else {
      posix_spawn_file_actions_addopen(&files, theirs, path.c_str(), flags, 0600);
    }
  };
  give(setting.input, 0, "/dev/null", O_RDONLY);
  give(setting.output, 1, output_path_, O_WRONLY | O_CREAT | O_TRUNC);
  give(setting.errors, 2, errors_path_, O_WRONLY | O_CREAT | O_TRUNC);
  // The programs count descriptors: they get these three and no more.
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  if (!setting.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&files, setting.folder.c_str());
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int group = setting.leads_group ? POSIX_SPAWN_SETPGROUP : 0;
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | group));
  std::vector<std::string> arguments = command;
  pid_t pid = -1;
  const int error = posix_spawnp(&pid, arguments[0].c_str(), &files, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    set_not_started(arguments[0] + ": " + std::strerror(error));
  } else {
    set_started(pid, words, setting.folder.empty() ? scratch : setting.folder);
  }
}

Ending run(const std::string& scratch, const Arguments& command, const Environment& more,
           seconds limit) {
  ChildProcess child(scratch, command, more);
  return child.wait(limit);
}

Ending run_shell(const std::string& command) {
  return run(shared_scratch().path(), {"/bin/sh", "-c", command}, {}, seconds(240));
}

// ---- SocketProgram

SocketProgram::Ends::Ends() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) std::abort();
  own = ends[0];
  program = ends[1];
}

SocketProgram::SocketProgram(const Arguments& command)
    : process_(shared_scratch().path(), command, {},
               {.input = ends_.program, .output = ends_.program}) {
  close(ends_.program);
}

SocketProgram::~SocketProgram() {
  shutdown(ends_.own, SHUT_RDWR);
  close(ends_.own);
  process_.wait();
}

}  // namespace collect::child
