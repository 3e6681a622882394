#include "daemon/ctl/record/program/job.h"

#include <spawn.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace collect::ctl {
namespace {

constexpr int kWaited[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGCHLD};
// Only a bound for one look; SIGCHLD ends it at once.
constexpr std::chrono::milliseconds kOneLook{1000};

}  // namespace

JobSignals::JobSignals() {
  // A parent that ignores SIGCHLD would make the kernel swallow our children's exit codes.
  ::signal(SIGCHLD, SIG_DFL);
  ::sigemptyset(&waited_);
  for (int number : kWaited) ::sigaddset(&waited_, number);
  sigset_t blocked = waited_;
  ::sigaddset(&blocked, SIGPIPE);  // no one reads our words any more: the program continues
  ::pthread_sigmask(SIG_BLOCK, &blocked, &original_);
}

JobSignals::~JobSignals() {
  ::pthread_sigmask(SIG_SETMASK, &original_, nullptr);
}

Signal JobSignals::wait(std::chrono::milliseconds timeout) {
  timespec limit{};
  limit.tv_sec = timeout.count() / 1000;
  limit.tv_nsec = timeout.count() % 1000 * 1'000'000;
  siginfo_t info{};
  const int number = ::sigtimedwait(&waited_, &info, &limit);
  if (number < 0) return {};
  return {number, info.si_code == SI_USER || info.si_code == SI_TKILL || info.si_code == SI_QUEUE};
}

std::vector<char*> c_strings(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

Result<pid_t> start_program(const std::string& program, const std::vector<std::string>& arguments,
                            const std::vector<std::string>& environment,
                            const JobSignals& signals) {
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setsigmask(&attributes, &signals.original_mask());
  pid_t pid = 0;
  const int error = ::posix_spawn(&pid, program.c_str(), nullptr, &attributes,
                                  c_strings(arguments).data(), c_strings(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (error == 0) return pid;
  if (error == ENOEXEC) {
    return Error{Code::kPermission,
                 program + ": is neither a program nor a script that begins with #!"};
  }
  return errno_error(error, program);
}

std::optional<int> exit_code_if_ended(pid_t pid) {
  int status = 0;
  if (::waitpid(pid, &status, WNOHANG) != pid) return std::nullopt;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int wait_for_program(pid_t pid, JobSignals& signals, const std::function<void()>& look) {
  while (true) {
    if (const auto code = exit_code_if_ended(pid)) return *code;
    if (look) look();
    const Signal signal = signals.wait(kOneLook);
    const bool forward =
        signal.number == SIGTERM || signal.number == SIGHUP ||
        ((signal.number == SIGINT || signal.number == SIGQUIT) && signal.from_user);
    if (forward) ::kill(pid, signal.number);
  }
}

std::optional<int> wait_bounded(pid_t pid, JobSignals& signals, std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (true) {
    if (const auto code = exit_code_if_ended(pid)) return code;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return std::nullopt;
    signals.wait(std::min(left, kOneLook));
  }
}

bool is_alive(pid_t pid) {
  return ::kill(pid, 0) == 0 || errno == EPERM;
}

}  // namespace collect::ctl
