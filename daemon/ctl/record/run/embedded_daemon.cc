#include "daemon/ctl/record/run/embedded_daemon.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "daemon/ctl/record/program/run_environment.h"
#include "storage/fs/descriptor.h"
#include "storage/fs/posix_fs.h"
#include "storage/fs/rooted_directory.h"

namespace collect::ctl {
namespace {

constexpr int kReadyFd = 3;
constexpr size_t kMaxLogTail = 2000;
constexpr std::chrono::milliseconds kRootLook{20};

struct Descriptors {
  int null;
  int log;
  int ready;
};

// Between vfork and exec: only system calls, and nothing is written, since the memory is its
// parent's.
[[noreturn]] void become_daemon(const char* program, char* const* arguments,
                                char* const* environment, const Descriptors& fds,
                                const sigset_t& mask, pid_t parent) {
  // The terminal's Ctrl-C is for the program, the daemon still has to seal. Not a session of its
  // own: where the kernel shares the processors out by session first, Linux 6.18 was seen to let
  // one that sleeps and wakes often starve all others for seconds, with its kernel threads.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  ::dup2(fds.null, STDIN_FILENO);
  ::dup2(fds.log, STDOUT_FILENO);
  ::dup2(fds.log, STDERR_FILENO);
  ::dup2(fds.ready, kReadyFd);  // another one: the log was opened before, and took what was free
  ::close_range(kReadyFd + 1, ~0U, 0);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execve(program, arguments, environment);
  ::_exit(127);
}

// What the daemon said on its ready descriptor before the bound; empty when it ended first.
std::string read_ready(int fd, std::chrono::milliseconds bound) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  std::string text;
  while (text.size() < kMaxReadyBytes) {
    if (text.ends_with('\n') && parse_ready(text).ok()) return text;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd poll_fd{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&poll_fd, 1, static_cast<int>(left.count())) == 0) return text;
    char buffer[512];
    const ssize_t got = ::read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// What the daemon wrote to its log after `from`: the reason why it did not start.
std::string log_since(int log, off_t from) {
  std::string text(kMaxLogTail, '\0');
  const ssize_t got = ::pread(log, text.data(), text.size(), from);
  text.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// The daemon inherits the descriptor and with it the lock: it lasts as long as either of us.
Status lock_root(int log, const std::string& root, std::chrono::milliseconds bound,
                 JobSignals& signals) {
  const auto deadline = std::chrono::steady_clock::now() + bound;
  while (::flock(log, LOCK_EX | LOCK_NB) != 0) {
    if (std::chrono::steady_clock::now() >= deadline) {
      return Error{
          Code::kAlreadyExists,
          fmt::format("another run records into {}; name another directory with -o", root)};
    }
    const int signal = signals.wait(kRootLook).number;
    if (signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT) {
      return Error{Code::kCancelled, "interrupted"};
    }
  }
  return {};
}

}  // namespace

Result<DaemonAddresses> parse_ready(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, false);
  const auto field = [&json](const char* name) {
    const auto found = json.is_object() ? json.find(name) : json.end();
    return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
  };
  const DaemonAddresses addresses{field("ingest"), field("control"), field("web")};
  if (addresses.ingest.empty() || addresses.control.empty()) {
    return Error{Code::kTruncated, "collectord did not say where it listens"};
  }
  return addresses;
}

Result<std::unique_ptr<EmbeddedDaemon>> EmbeddedDaemon::start(const std::string& program,
                                                              const std::string& root,
                                                              const std::string& control,
                                                              const std::vector<std::string>& more,
                                                              std::chrono::milliseconds root_bound,
                                                              JobSignals& signals) {
  COLLECT_TRY(storage::PosixFs(root).make_directories(root));
  const auto directory = storage::RootedDirectory::open(root);
  if (!directory.ok()) return directory.error();
  const std::string log_path = directory->path_of(kDaemonLog);
  const auto opened = directory->open_file(kDaemonLog, storage::FileUse::kAppend);
  if (!opened.ok()) return opened.error();
  const Descriptor& log = *opened;
  COLLECT_TRY(lock_root(log.get(), root, root_bound, signals));
  const off_t log_start = ::lseek(log.get(), 0, SEEK_END);
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  int ends[2];
  if (null.get() < 0 || ::pipe2(ends, O_CLOEXEC) != 0) {
    return errno_error(errno, "cannot start " + program);
  }
  const Descriptor ready_read(ends[0]);
  Descriptor ready_write(ends[1]);

  std::vector<std::string> arguments = {program,    "--root",      root,
                                        "--ingest", "127.0.0.1:0", "--control",
                                        control,    "--ready-fd",  std::to_string(kReadyFd)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const std::vector<std::string> environment = own_environment();
  const std::vector<char*> argument_pointers = c_strings(arguments);
  const std::vector<char*> environment_pointers = c_strings(environment);
  const Descriptors fds{null.get(), log.get(), ready_write.get()};
  const pid_t parent = ::getpid();
  // A fork would copy our page tables: that was 4.5 of the 117 ms of a short run.
  const pid_t pid = ::vfork();
  if (pid < 0) return errno_error(errno, "cannot start " + program);
  if (pid == 0) {
    become_daemon(program.c_str(), argument_pointers.data(), environment_pointers.data(), fds,
                  signals.original_mask(), parent);
  }
  ready_write.reset();  // the daemon's end of the pipe is the only one: its exit ends the read
  std::unique_ptr<EmbeddedDaemon> daemon(new EmbeddedDaemon(pid, log_path));
  Result<DaemonAddresses> addresses = parse_ready(read_ready(ready_read.get(), kDaemonReadyBound));
  if (!addresses.ok()) {
    const std::string said = log_since(log.get(), log_start);
    return Error{Code::kUnavailable, fmt::format("{} did not start{}", program,
                                                 said.empty() ? "; see " + log_path : ": " + said)};
  }
  daemon->addresses_ = std::move(*addresses);
  return daemon;
}

EmbeddedDaemon::~EmbeddedDaemon() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string EmbeddedDaemon::ending() {
  if (pid_ == 0) return ending_;
  const std::optional<int> code = exit_code_if_ended(pid_);
  if (!code) return {};
  pid_ = 0;
  ending_ = *code > 128
                ? fmt::format("the collector was ended by a signal ({})", ::strsignal(*code - 128))
                : fmt::format("the collector ended with exit code {}", *code);
  ending_ += " before the run did; see " + log_path_;
  return ending_;
}

void EmbeddedDaemon::ask_to_stop() {
  if (pid_ != 0) ::kill(pid_, SIGTERM);
}

Status EmbeddedDaemon::stop(JobSignals& signals) {
  if (pid_ == 0) return {};
  ask_to_stop();
  const std::optional<int> code = wait_bounded(pid_, signals, kDaemonStopBound);
  if (!code) {
    return Error{Code::kUnavailable, fmt::format("collectord did not end in time and was killed; "
                                                 "see {} (collectctl inspect shows what is stored)",
                                                 log_path_)};
  }
  pid_ = 0;
  if (*code == 0) return {};
  return Error{Code::kIo,
               fmt::format("collectord ended with exit code {}; see {}", *code, log_path_)};
}

}  // namespace collect::ctl
