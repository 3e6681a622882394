#include "tests/daemon/ctl/mutated/bounded_child.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "tests/fakes/sanitized.h"

namespace collect::ctl::testing {
namespace {

constexpr uint64_t kRunsPerChild = 500;

// What a child leaves behind, however it ends.
struct Trace {
  volatile uint64_t number;
  char what[4096];
};

void set_bounds(const Bounds& bounds) {
  if (!fakes::kSanitized) {
    const rlimit memory{bounds.address_bytes, bounds.address_bytes};
    setrlimit(RLIMIT_AS, &memory);
  }
  const rlimit file{bounds.file_bytes, bounds.file_bytes};
  setrlimit(RLIMIT_FSIZE, &file);
  const rlimit core{0, 0};
  setrlimit(RLIMIT_CORE, &core);
  signal(SIGPIPE, SIG_IGN);
}

// The kernel ends a run that takes too long: SIGALRM, SIGVTALRM.
void set_timers(const Bounds& bounds) {
  const itimerval wall{{0, 0}, {bounds.wall_seconds, 0}};
  setitimer(ITIMER_REAL, &wall, nullptr);
  const itimerval cpu{{0, 0}, {bounds.cpu_seconds * (fakes::kSanitized ? 10 : 1), 0}};
  setitimer(ITIMER_VIRTUAL, &cpu, nullptr);
}

[[noreturn]] void child(uint64_t first, uint64_t end, const Bounds& bounds, Trace& trace,
                        const std::function<std::string(uint64_t)>& run) {
  set_bounds(bounds);
  for (uint64_t number = first; number < end; ++number) {
    trace.number = number;
    set_timers(bounds);
    const std::string wrong = run(number);
    if (wrong.empty()) continue;
    std::snprintf(trace.what, sizeof trace.what, "%s", wrong.c_str());
    ::_exit(1);
  }
  ::_exit(0);
}

std::string ending_of(int status, const Trace& trace) {
  if (WIFEXITED(status)) {
    return trace.what[0] != '\0' ? trace.what : "exit " + std::to_string(WEXITSTATUS(status));
  }
  const int number = WTERMSIG(status);
  if (number == SIGALRM) return "it did not end in its time";
  if (number == SIGVTALRM) return "it took too much CPU time";
  if (number == SIGXFSZ) return "it wrote more than a file may have";
  return std::string("signal ") + strsignal(number);
}

}  // namespace

std::vector<Failure> run_bounded(uint64_t first, uint64_t end, const Bounds& bounds, size_t most,
                                 const std::function<std::string(uint64_t)>& run) {
  std::vector<Failure> failures;
  void* const shared =
      mmap(nullptr, sizeof(Trace), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return {{first, "no memory to share with a child"}};
  Trace& trace = *static_cast<Trace*>(shared);
  while (first < end && failures.size() < most) {
    const uint64_t stop = std::min(end, first + kRunsPerChild);
    trace.number = first;
    trace.what[0] = '\0';
    std::fflush(nullptr);
    const pid_t pid = fork();
    if (pid == 0) child(first, stop, bounds, trace, run);
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
      failures.push_back({first, "no child process"});
      break;
    }
    first = stop;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
    failures.push_back({trace.number, ending_of(status, trace)});
    first = trace.number + 1;
  }
  munmap(shared, sizeof(Trace));
  return failures;
}

}  // namespace collect::ctl::testing
