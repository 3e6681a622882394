#include "proto/conformance/agents/child_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string_view>

namespace collect::conformance {
namespace {

constexpr int kEnding[] = {SIGINT, SIGTERM, SIGHUP};

// The process group of the program that runs; 0: none does.
std::atomic<pid_t> running_group{0};
static_assert(std::atomic<pid_t>::is_always_lock_free);  // a signal handler reads it

void end_program_and_self(int number) {
  if (const pid_t group = running_group.load(); group != 0) ::kill(-group, SIGKILL);
  ::signal(number, SIG_DFL);
  ::raise(number);
}

// In a process group of its own, which is ended with it: a drain process belongs to it too.
class ChildProgram final : public AgentProgram {
 public:
  explicit ChildProgram(pid_t pid) : pid_(pid) { running_group.store(pid); }
  ~ChildProgram() override {
    ::kill(-pid_, SIGKILL);
    if (!ended_) ::waitpid(pid_, nullptr, 0);
    running_group.store(0);
  }
  bool has_ended() override {
    ended_ = ended_ || ::waitpid(pid_, nullptr, WNOHANG) == pid_;
    return ended_;
  }

 private:
  const pid_t pid_;
  bool ended_ = false;
};

std::vector<std::string> environment_for(const std::string& address,
                                         const std::string& token_file) {
  std::vector<std::string> environment;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view variable = *at;
    if (variable.starts_with("COLLECT_CONNECT=") || variable.starts_with("COLLECT_LISTEN="))
      continue;
    if (!token_file.empty() && variable.starts_with("COLLECT_TOKEN_FILE=")) continue;
    environment.emplace_back(variable);
  }
  environment.push_back("COLLECT_CONNECT=" + address);
  if (!token_file.empty()) environment.push_back("COLLECT_TOKEN_FILE=" + token_file);
  return environment;
}

// What a shell would run for `name`.
Result<std::string> find_program(const std::string& name) {
  const char* variable = std::getenv("PATH");
  std::string_view path = variable != nullptr ? variable : "/usr/local/bin:/usr/bin:/bin";
  Error missing{Code::kNotFound, name + ": no such program in PATH"};
  const auto is_program = [&missing, &name](const std::string& candidate) {
    struct stat status{};
    if (::stat(candidate.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return false;
    if (::access(candidate.c_str(), X_OK) == 0) return true;
    missing = {Code::kPermission, name + ": cannot be executed"};
    return false;
  };
  if (name.find('/') != std::string::npos) {
    missing.message = name + ": no such program";
    if (is_program(name)) return name;
    return missing;
  }
  for (bool is_last = name.empty(); !is_last;) {
    const size_t end = path.find(':');
    is_last = end == std::string_view::npos;
    const std::string_view folder = path.substr(0, end);
    std::string candidate = fmt::format("{}/{}", folder.empty() ? "." : std::string(folder), name);
    if (is_program(candidate)) return candidate;
    if (!is_last) path.remove_prefix(end + 1);
  }
  return missing;
}

// NULL-terminated pointers into `strings`, as exec wants them.
std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Result<std::unique_ptr<AgentProgram>> start_program(const std::vector<std::string>& arguments,
                                                    const std::string& address,
                                                    const std::string& token_file) {
  const Result<std::string> program = find_program(arguments.front());
  if (!program.ok()) return program.error();
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t restored;
  ::sigemptyset(&restored);
  ::sigaddset(&restored, SIGPIPE);
  ::posix_spawnattr_setsigdefault(&attributes, &restored);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, program->c_str(), &actions, &attributes, c_strings(arguments).data(),
                    c_strings(environment_for(address, token_file)).data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return errno_error(error, *program);
  return std::unique_ptr<AgentProgram>(std::make_unique<ChildProgram>(pid));
}

void end_program_on_signals() {
  for (const int number : kEnding) ::signal(number, end_program_and_self);
}

}  // namespace collect::conformance
