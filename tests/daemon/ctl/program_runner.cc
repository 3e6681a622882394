#include "tests/daemon/ctl/program_runner.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "daemon/ctl/record/program/job.h"
#include "daemon/ctl/record/program/run_environment.h"

namespace collect::ctl {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

std::string contents(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

bool eventually(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

ProgramRunner::ProgramRunner() {
  std::string pattern = std::filesystem::temp_directory_path() / "collectctl-XXXXXX";
  if (::mkdtemp(pattern.data()) != nullptr) directory_ = pattern;
  runtime_ = directory_.string() + "-runtime";
  ::mkdir(runtime_.c_str(), 0700);
}

ProgramRunner::~ProgramRunner() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
  std::filesystem::remove_all(runtime_, ignored);
}

pid_t ProgramRunner::start(const std::vector<std::string>& arguments) {
  std::ofstream(directory_ / "stdin") << input;
  std::vector<std::string> command = {COLLECTCTL};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> given = environment;
  given.emplace("XDG_RUNTIME_DIR", runtime_);
  std::vector<std::string> variables;
  for (const std::string& entry : own_environment()) {
    const std::string name = entry.substr(0, entry.find('='));
    if (!given.contains(name) && !name.starts_with("COLLECT_")) variables.push_back(entry);
  }
  for (const auto& [name, value] : given) {
    if (!value.empty()) variables.push_back(name + "=" + value);
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, directory_.c_str());
  posix_spawn_file_actions_addopen(&actions, 0, "stdin", O_RDONLY, 0);
  if (output >= 0) {
    posix_spawn_file_actions_adddup2(&actions, output, 1);
  } else {
    posix_spawn_file_actions_addopen(&actions, 1, "stdout", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  if (errors >= 0) {
    posix_spawn_file_actions_adddup2(&actions, errors, 2);
  } else {
    posix_spawn_file_actions_addopen(&actions, 2, "stderr", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  }
  // In the background of a script some are ignored.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t all;
  sigfillset(&all);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  posix_spawn(&pid, COLLECTCTL, &actions, &attributes, c_strings(command).data(),
              c_strings(variables).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return pid;
}

Ran ProgramRunner::finish(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return {WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), out_so_far(),
          contents(directory_ / "stderr")};
}

Ran ProgramRunner::run(const std::vector<std::string>& arguments) {
  return finish(start(arguments));
}

std::string ProgramRunner::out_so_far() const {
  return contents(directory_ / "stdout");
}

}  // namespace collect::ctl
