#include "daemon/symbolize/child_program.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <utility>

#include "daemon/symbolize/exit_codes.h"
#include "daemon/symbolize/limits.h"
#include "storage/fs/descriptor.h"

namespace collect::symbolize {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kStopLook{50};  // how often `stop` is looked at
constexpr std::chrono::seconds kReapBound{
    1};  // one that was killed, or has closed its output, is gone

// The attributes and actions of posix_spawn, freed with this.
struct SpawnSettings {
  SpawnSettings() {
    ::posix_spawnattr_init(&attributes);
    ::posix_spawn_file_actions_init(&actions);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_t actions;
};

// `input` and `output` are above 2: the caller's descriptors 0 to 2 are open.
int spawn(ChildCommand command, const ChildBounds& bounds, int input, int output, pid_t& pid) {
  SpawnSettings settings;
  sigset_t none;
  sigset_t all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  // Where we ignore it, the child does: a write beyond the bound is then an error that it can clean
  // up after.
  if (bounds.file_bytes != 0) ::sigdelset(&all, SIGXFSZ);
  ::posix_spawnattr_setsigmask(&settings.attributes, &none);
  ::posix_spawnattr_setsigdefault(&settings.attributes, &all);
  // Its process group is its own: of which it is to be one is 0 by default.
  ::posix_spawnattr_setflags(
      &settings.attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  ::posix_spawn_file_actions_adddup2(&settings.actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&settings.actions, output, STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&settings.actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addclosefrom_np(&settings.actions, STDERR_FILENO + 1);
  ::posix_spawn_file_actions_addchdir_np(&settings.actions, "/");
  std::vector<char*> arguments = {command.program.data()};
  for (std::string& argument : command.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment;
  for (std::string& variable : command.environment) environment.push_back(variable.data());
  environment.push_back(nullptr);
  return ::posix_spawn(&pid, command.program.c_str(), &settings.actions, &settings.attributes,
                       arguments.data(), environment.data());
}

std::string fault_of(int status) {
  if (WIFEXITED(status)) {
    switch (WEXITSTATUS(status)) {
      case kExitDone:
        return {};
      case kExitNoMemory:
        return fmt::format("ended: more than {} MB of memory", kLookupMemoryBytes >> 20);
      case kExitNotConfined:
        return "not begun: the lookup could not give up its privileges";
      default:
        return fmt::format("ended with exit code {}", WEXITSTATUS(status));
    }
  }
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGXCPU) {
    return fmt::format("ended: more than {} s of CPU time", kLookupCpuSeconds);
  }
  if (signal == SIGKILL) return "ended: someone killed it, or memory ran out";
  if (signal == SIGSYS) return "ended: it made a system call that it may not make";
  return fmt::format("crashed (signal {})", signal);
}

// One child while it runs: feeds it, takes what it says, and keeps it within its bounds.
class Child {
 public:
  Child(pid_t pid, int pidfd, int input, int output, Bytes request, const ChildBounds& bounds)
      : pid_(pid),
        pidfd_(pidfd),
        input_(input),
        output_(output),
        request_(request),
        bounds_(bounds) {}

  Result<ChildEnding> follow(const std::function<Status(Bytes)>& take) {
    Status status;
    const auto deadline = Clock::now() + bounds_.deadline;
    while (status.ok() && output_.get() >= 0) {
      if (bounds_.stop != nullptr && bounds_.stop->load()) {
        status = Error{Code::kCancelled, "stopped"};
      } else if (Clock::now() >= deadline) {
        status = Error{Code::kLimit,
                       fmt::format("ended: more than {} s", bounds_.deadline.count() / 1000)};
      } else {
        status = turn(take);
      }
    }
    if (status.ok() && !ends()) {
      status = Error{Code::kDamaged, "ended: it closed its output and continued"};
    }
    ::kill(pid_, SIGKILL);
    const int end = reap();
    if (status.ok()) return ChildEnding{fault_of(end), exit_code(end)};
    if (status.code() == Code::kCancelled) return status.error();
    return ChildEnding{status.error().message, -1};
  }

 private:
  Status turn(const std::function<Status(Bytes)>& take) {
    pollfd sockets[] = {{output_.get(), POLLIN, {}}, {input_.get(), POLLOUT, {}}};
    const int ready = ::poll(sockets, std::size(sockets), static_cast<int>(kStopLook.count()));
    if (ready < 0) return errno == EINTR ? Status() : errno_error(errno, "poll");
    if (sockets[1].revents != 0) feed();
    if (sockets[0].revents == 0) return {};
    const ssize_t got = ::read(output_.get(), block_.data(), block_.size());
    if (got <= 0) {  // its end: what poll() announced is read without a wait
      output_.reset();
      return {};
    }
    taken_ += static_cast<uint64_t>(got);
    if (taken_ > bounds_.output_bytes) {
      return Error{Code::kLimit,
                   fmt::format("ended: more than {} MB of output", bounds_.output_bytes >> 20)};
    }
    return take(Bytes(block_).first(static_cast<size_t>(got)));
  }

  void feed() {
    // poll() has announced room, or the child's end. A child that takes no more has ended, or will
    // say why.
    const ssize_t sent =
        ::send(input_.get(), request_.data(), request_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    request_ = sent < 0 ? Bytes() : request_.subspan(static_cast<size_t>(sent));
    if (request_.empty()) input_.reset();
  }

  // Whether it has ended, or does within the bound.
  bool ends() {
    if (pidfd_.get() < 0) return true;  // a kernel without: no one can say
    pollfd gone[] = {{pidfd_.get(), POLLIN, {}}};
    const timespec bound{.tv_sec = kReapBound.count(), .tv_nsec = {}};
    sigset_t all;
    ::sigfillset(&all);
    return ::ppoll(gone, std::size(gone), &bound, &all) > 0;  // no signal ends it early
  }

  // Stuck in the kernel, a child may outlive even SIGKILL: then it is left behind.
  int reap() {
    int status = SIGKILL;
    if (pidfd_.get() < 0) {  // its end can only be waited for
      while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
      }
      return status;
    }
    (void)ends();
    (void)::waitpid(pid_, &status, WNOHANG);
    return status;
  }

  static int exit_code(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : -1; }

  const pid_t pid_;
  const Descriptor pidfd_;
  Descriptor input_;
  Descriptor output_;
  Bytes request_;  // what is still to be sent
  const ChildBounds& bounds_;
  uint64_t taken_ = 0;
  std::array<uint8_t, 64 * 1024> block_;
};

}  // namespace

std::string own_program(const std::string& name) {
  std::error_code error;
  const std::filesystem::path own =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path beside = own / name;
  const std::filesystem::path installed = own / "../libexec/collectord" / name;
  const bool is_installed =
      !std::filesystem::exists(beside, error) && std::filesystem::exists(installed, error);
  return (is_installed ? installed.lexically_normal() : beside).string();
}

Result<ChildEnding> run_child(const ChildCommand& command, Bytes input, const ChildBounds& bounds,
                              const std::function<Status(Bytes)>& take) {
  // A socket for the request: a child that ends early is then an error, and no SIGPIPE.
  int request[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, request) != 0) {
    return errno_error(errno, "socketpair");
  }
  Descriptor our_input(request[0]);
  Descriptor their_input(request[1]);
  int answer[2];
  if (::pipe2(answer, O_CLOEXEC) != 0) return errno_error(errno, "pipe");
  Descriptor our_output(answer[0]);
  Descriptor their_output(answer[1]);
  pid_t pid = 0;
  const int failed = spawn(command, bounds, their_input.get(), their_output.get(), pid);
  if (failed != 0) return errno_error(failed, command.program);
  their_input.reset();
  their_output.reset();
  if (bounds.file_bytes != 0) {
    const rlimit most{bounds.file_bytes, bounds.file_bytes};
    (void)::prlimit(pid, RLIMIT_FSIZE, &most, nullptr);
  }
  const int pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
  return Child(pid, pidfd, our_input.release(), our_output.release(), input, bounds).follow(take);
}

}  // namespace collect::symbolize
