#include "agent/drain/ship/traced_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "agent/drain/link/control.h"
#include "agent/platform/system.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

// Newer than the headers that this is built with. Linux 6.15 reports the status of a process that
// was waited for already.
struct PidfdInfo {
  uint64_t mask;       //  0
  uint64_t cgroup_id;  //  8
  uint32_t ids[11];    // 16
  int32_t exit_code;   // 60
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr uint64_t kPidfdInfoExit = 1u << 3;
constexpr unsigned long kPidfdGetInfo = _IOWR(0xFF, 11, PidfdInfo);

constexpr int kStatusTries = 3;
// Fields of /proc/<pid>/stat, counted as in its manual page.
constexpr int kStateField = 3;
constexpr int kMemorySizeField = 23;
constexpr int kExitCodeField = 52;

struct ProcessStat {
  char state = '?';
  uint64_t memory_bytes = 0;
  uint64_t exit_code = 0;
};

// kMainThread is cheaper: the kernel need not look at all the other threads.
enum class StatOf : uint8_t { kProcess, kMainThread };

bool read_stat(pid_t pid, ProcessStat& stat, StatOf of = StatOf::kProcess) {
  char path[48];
  Text text_path(path, sizeof path);
  text_path.add("/proc/").number(static_cast<uint64_t>(pid));
  if (of == StatOf::kMainThread) text_path.add("/task/").number(static_cast<uint64_t>(pid));
  text_path.add("/stat");
  const int file = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[1024];
  const ssize_t bytes = sys::read(file, text, sizeof text - 1);
  (void)sys::close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // "pid (name) state …": the name may hold anything, so the fields are found from its end.
  const char* at = strrchr(text, ')');
  if (at == nullptr) return false;
  int field = 2;
  for (++at; *at != '\0'; ++at) {
    if (*at != ' ') continue;
    ++field;
    if (field == kStateField) stat.state = at[1];
    if (field != kMemorySizeField && field != kExitCodeField) continue;
    uint64_t value = 0;
    for (const char* digit = at + 1; *digit >= '0' && *digit <= '9'; ++digit) {
      value = value * 10 + static_cast<uint64_t>(*digit - '0');
    }
    (field == kMemorySizeField ? stat.memory_bytes : stat.exit_code) = value;
  }
  return field >= kExitCodeField;
}

struct SignalName {
  int number;
  const char* name;
};
constexpr SignalName kSignalNames[] = {
    {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"}, {SIGILL, "SIGILL"},
    {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"}, {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},
    {SIGKILL, "SIGKILL"}, {SIGUSR1, "SIGUSR1"}, {SIGSEGV, "SIGSEGV"}, {SIGUSR2, "SIGUSR2"},
    {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"}, {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"},
    {SIGXFSZ, "SIGXFSZ"}, {SIGSYS, "SIGSYS"},   {SIGIO, "SIGIO"},     {SIGVTALRM, "SIGVTALRM"},
    {SIGPROF, "SIGPROF"},
};

}  // namespace

bool is_process_over(pid_t pid) {
  if (sys::kill(pid, 0) != 0 && errno == ESRCH) return true;
  ProcessStat stat;
  return read_stat(pid, stat) && stat.state == 'Z';
}

const char* signal_name(int number) {
  for (const SignalName& known : kSignalNames) {
    if (known.number == number) return known.name;
  }
  return nullptr;
}

void TracedProcess::watch(pid_t pid, int pidfd, int alive) {
  *this = TracedProcess{};
  pid_ = pid;
  pidfd_ = pidfd;
  alive_ = alive;
}

bool TracedProcess::is_dead() const {
  pollfd waiting{pidfd_, POLLIN, 0};
  return sys::poll(&waiting, 1, 0) > 0;
}

bool TracedProcess::has_memory() {
  // EBUSY: someone may write to it. Anything else would be a seal that took, now or before.
  return sys::fcntl(alive_, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EBUSY;
}

bool TracedProcess::is_stopped() const {
  ProcessStat stat;
  return life_ == Life::kLives && read_stat(pid_, stat, StatOf::kMainThread) &&
         (stat.state == 'T' || stat.state == 't');
}

TracedProcess::Life TracedProcess::look(uint64_t now_ms, uint64_t exit_code) {
  if (life_ == Life::kEnded || now_ms < look_at_ms_) return life_;
  look_at_ms_ = now_ms + kLookMs;
  if (life_ == Life::kLives) {
    if (!is_dead() && has_memory()) return life_;
    life_ = Life::kGone;
    gone_at_ms_ = now_ms;
  }
  look_at_ms_ = 0;
  find_end(now_ms, exit_code);
  return life_;
}

void TracedProcess::find_end(uint64_t now_ms, uint64_t exit_code) {
  if (!is_dead()) {
    // A process that is about to end has no memory; one that became another program has a new one.
    ProcessStat stat;
    const bool readable = read_stat(pid_, stat);
    const bool new_memory = readable && stat.memory_bytes != 0;
    if (!new_memory && now_ms - gone_at_ms_ < kMaxDyingMs) return;
    life_ = Life::kEnded;
    end_.how = collect_wire_ProcessEnd_How_EXECED;
    Text(reason_, sizeof reason_).add("replaced by exec");
    return;
  }
  life_ = Life::kEnded;
  int status = 0;
  if (read_wait_status(&status)) {
    take_wait_status(status);
  } else if ((exit_code & kExitCodeKnown) != 0) {
    take_wait_status(static_cast<int>(exit_code & 0xFF) << 8);
  } else {
    end_.how = collect_wire_ProcessEnd_How_UNKNOWN;
    Text(reason_, sizeof reason_).add("gone");
  }
}

// The system has the status in one place while no one waited for the process, and in another after.
bool TracedProcess::read_wait_status(int* status) const {
  for (int i = 0; i < kStatusTries; ++i) {
    PidfdInfo info{};
    info.mask = kPidfdInfoExit;
    if (sys::call(SYS_ioctl, pidfd_, kPidfdGetInfo, &info) == 0 &&
        (info.mask & kPidfdInfoExit) != 0) {
      *status = info.exit_code;
      return true;
    }
    ProcessStat stat;
    if (!read_stat(pid_, stat) || stat.state != 'Z') continue;
    // Its number is not given to another as long as it can be sent a signal.
    if (sys::call(SYS_pidfd_send_signal, pidfd_, 0, nullptr, 0) == -1 && errno == ESRCH) continue;
    *status = static_cast<int>(stat.exit_code);
    return true;
  }
  return false;
}

void TracedProcess::take_wait_status(int status) {
  if (WIFSIGNALED(status)) {
    end_.how = collect_wire_ProcessEnd_How_SIGNALED;
    end_.signal = static_cast<uint32_t>(WTERMSIG(status));
    end_.core_dumped = WCOREDUMP(status);
    Text text(reason_, sizeof reason_);
    const char* const name = signal_name(WTERMSIG(status));
    text.add("killed by ").add(name != nullptr ? name : "signal ");
    if (name == nullptr) text.number(end_.signal);
    return;
  }
  end_.how = collect_wire_ProcessEnd_How_EXITED;
  end_.exit_code = WEXITSTATUS(status);
  Text(reason_, sizeof reason_).add("exit");
}

}  // namespace collect::agent
