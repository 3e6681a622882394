#include "daemon/inject/process_threads.h"

#include <fmt/core.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "daemon/machine/process_stat.h"

namespace collect::inject {
namespace {

constexpr char kEnded = 'Z';    // and not waited for
constexpr char kRemoved = 'X';  // also when it is no longer there

// The state's letter, from a file as /proc/PID/stat.
char state_in(const std::string& path) {
  const auto stat = read_process_stat(path);
  return stat ? stat->state : kRemoved;
}

bool is_ended(char state) {
  return state == kEnded || state == kRemoved;
}

// Calls use(tid, state) for each.
template <class Use>
void for_each_thread(pid_t pid, Use use) {
  const std::string folder = fmt::format("/proc/{}/task", pid);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    use(std::atoi(entry.path().filename().c_str()), state_in(entry.path() / "stat"));
  }
}

}  // namespace

std::vector<pid_t> threads_of(pid_t pid) {
  std::vector<pid_t> threads;
  for_each_thread(pid, [&threads](pid_t tid, char state) {
    if (!is_ended(state)) threads.push_back(tid);
  });
  return threads;
}

bool has_ended(pid_t tid) {
  return is_ended(state_in(fmt::format("/proc/{}/stat", tid)));
}

bool is_first_thread(pid_t tid) {
  std::ifstream file(fmt::format("/proc/{}/status", tid));
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("Tgid:")) return std::atoi(line.c_str() + sizeof "Tgid:") == tid;
  }
  return false;
}

void reap_ended_threads(pid_t pid) {
  for_each_thread(pid, [pid](pid_t tid, char state) {
    // The first thread represents the process, for which its parent waits.
    if (state == kEnded && tid != pid) (void)::waitpid(tid, nullptr, __WALL | WNOHANG);
  });
}

}  // namespace collect::inject
