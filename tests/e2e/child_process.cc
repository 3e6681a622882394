#include "tests/e2e/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <mutex>
#include <sstream>
#include <thread>

extern char** environ;

namespace collect::e2e {
namespace {

// Where the programs of this test find each other: neither the user's own nor another test's.
const std::string& runtime_directory() {
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
  if (!more.contains("XDG_RUNTIME_DIR")) lines.push_back("XDG_RUNTIME_DIR=" + runtime_directory());
  for (const auto& [name, value] : more) {
    if (!value.empty()) lines.push_back(name + "=" + value);
  }
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

// When a test fails: what its programs were, and what they wrote.
class ProgramsOfFailedTests final : public testing::EmptyTestEventListener {
 public:
  struct Program {
    std::string command, folder, output_path, errors_path;
    std::string ending = "not waited for";
  };

  // The listener of this test program, which GoogleTest owns.
  static ProgramsOfFailedTests& instance() {
    static auto* const listener = [] {
      auto* made = new ProgramsOfFailedTests;
      testing::UnitTest::GetInstance()->listeners().Append(made);
      return made;
    }();
    return *listener;
  }

  void add(Program program) {
    const std::lock_guard lock(mutex_);
    programs_.push_back(std::move(program));
  }
  void set_ending(const std::string& output_path, const std::string& ending) {
    const std::lock_guard lock(mutex_);
    for (Program& program : programs_) {
      if (program.output_path == output_path) program.ending = ending;
    }
  }

 private:
  static constexpr size_t kShownBytes = 4096;  // of each stream, its end

  void OnTestStart(const testing::TestInfo&) override {
    const std::lock_guard lock(mutex_);
    programs_.clear();
  }
  // A test that fails keeps its folder, so the files are there.
  void OnTestEnd(const testing::TestInfo& test) override {
    if (!test.result()->Failed()) return;
    const std::lock_guard lock(mutex_);
    for (const Program& program : programs_) {
      std::cout << "$ " << program.command << "\n  in " << program.folder << ": " << program.ending
                << "\n";
      show("stdout", program.output_path);
      show("stderr", program.errors_path);
    }
    std::cout.flush();
  }
  static void show(const char* name, const std::string& path) {
    std::string text = read_text_file(path);
    if (text.empty()) return;
    if (text.size() > kShownBytes) text = "…" + text.substr(text.size() - kShownBytes);
    std::cout << "  " << name << " (" << path << "):\n"
              << text << (text.back() == '\n' ? "" : "\n");
  }

  std::mutex mutex_;  // tests start programs on several threads
  std::vector<Program> programs_;
};

}  // namespace

std::string Ending::describe() const {
  if (timed_out) return "killed by the test after its time";
  if (signal != 0) return "signal " + std::to_string(signal);
  return "exit " + std::to_string(exit_code);
}

ChildProcess::ChildProcess(const std::string& scratch, const Arguments& command,
                           const Environment& more) {
  const std::string name = scratch + "/" + next_name();
  output_path_ = name + ".out";
  errors_path_ = name + ".err";
  std::vector<std::string> arguments = command;
  std::vector<std::string> environment = merged_environment(more);
  environment.push_back("TEST_SCRATCH=" + scratch);  // drain_processes() finds its own by it
  std::string words;
  for (const auto& [variable, value] : more) words += variable + "=" + value + " ";
  for (const std::string& argument : command) words += argument + " ";
  ProgramsOfFailedTests::instance().add({words, scratch, output_path_, errors_path_});
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  const int flags = O_WRONLY | O_CREAT | O_TRUNC;
  posix_spawn_file_actions_addopen(&files, 1, output_path_.c_str(), flags, 0600);
  posix_spawn_file_actions_addopen(&files, 2, errors_path_.c_str(), flags, 0600);
  // The programs count descriptors: they get these three and no more.
  posix_spawn_file_actions_addclosefrom_np(&files, 3);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const int error = posix_spawnp(&pid_, arguments[0].c_str(), &files, &attributes,
                                 pointers(arguments).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    ADD_FAILURE() << "cannot start " << arguments[0] << ": " << std::strerror(error);
    ending_.errors = "not started";
    status_ = -1;
  }
}

ChildProcess::~ChildProcess() {
  if (running()) {
    send_signal(SIGKILL);
    collect_status(0);
  }
}

bool ChildProcess::collect_status(int options) {
  if (status_) return true;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, options);
  if (ended != pid_) return false;
  status_ = status;
  if (WIFEXITED(status)) ending_.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ending_.signal = WTERMSIG(status);
  ending_.output = output();
  ending_.errors = errors();
  ProgramsOfFailedTests::instance().set_ending(output_path_, ending_.describe());
  return true;
}

bool ChildProcess::running() {
  return !collect_status(WNOHANG);
}

void ChildProcess::send_signal(int number) const {
  if (!status_) kill(pid_, number);
}

const Ending& ChildProcess::wait(seconds limit) {
  if (!eventually(limit, [this] { return collect_status(WNOHANG); })) {
    send_signal(SIGKILL);
    collect_status(0);
    ending_.timed_out = true;
  }
  return ending_;
}

uint64_t ChildProcess::resident_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  std::string word;
  uint64_t resident_kb = 0;
  while (status >> word) {
    if (word == "VmRSS:") status >> resident_kb;
  }
  return resident_kb * 1024;
}

std::string ChildProcess::output() const {
  return read_text_file(output_path_);
}
std::string ChildProcess::errors() const {
  return read_text_file(errors_path_);
}

Ending run(const std::string& scratch, const Arguments& command, const Environment& more,
           seconds limit) {
  ChildProcess child(scratch, command, more);
  return child.wait(limit);
}

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

std::string read_text_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text_file(const std::string& path, const std::string& content) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << content;
  ASSERT_TRUE(file.flush().good()) << path;
}

Scratch::Scratch() {
  // E2E_SCRATCH is below the build tree: a real disk with room, not /tmp.
  std::filesystem::create_directories(E2E_SCRATCH);
  std::string name = std::string(E2E_SCRATCH) + "/run_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no directory in " << E2E_SCRATCH;
  path_ = name;
}

Scratch::~Scratch() {
  if (testing::Test::HasFailure()) return;
  std::error_code ignored;  // what is left over is below the build tree
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace collect::e2e
