// Linux and Android. Android's seccomp filter of apps lets all of these calls through: membarrier
// since Android 10, which the agent needs in any case.
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/platform/threads.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

int barrier_command = 0;  // 0: the kernel has none

}  // namespace

uint32_t os_thread_id() {
  return static_cast<uint32_t>(syscall(SYS_gettid));
}

void read_thread_name(pid_t process, uint32_t thread_id, char* out, size_t out_bytes) {
  char path[64];
  Text text(path, sizeof path);
  text.add("/proc/");
  if (process != 0) {
    text.number(static_cast<uint64_t>(process));
  } else {
    text.add("self");  // a process may not know its number in this /proc
  }
  text.add("/task/").number(thread_id).add("/comm");
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return;  // gone already: what was read before stays
  const ssize_t bytes = read(file, out, out_bytes - 1);
  (void)close(file);
  if (bytes <= 0) return;
  out[out[bytes - 1] == '\n' ? bytes - 1 : bytes] = '\0';
}

LivingThreads::LivingThreads(pid_t process) : process_(process) {}
LivingThreads::~LivingThreads() = default;

bool LivingThreads::contains(uint32_t thread_id) const {
  return syscall(SYS_tgkill, process_, thread_id, 0) != -1 || errno != ESRCH;
}

bool only_this_thread_left() {
  struct stat tasks;
  // A folder for each thread, and two links of its own: an ended main thread keeps its folder.
  if (stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 4) return false;
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[256];
  const ssize_t bytes = read(file, text, sizeof text - 1);
  (void)close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // "pid (name) state …": the name may hold anything, so the state is found from its end.
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'Z';
}

uint64_t voluntary_switches() {
  rusage usage;
  return getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<uint64_t>(usage.ru_nvcsw) : 0;
}

// This process's own threads or, from the drain process, those of every process that registered for
// it.
void register_barrier(bool elsewhere) {
  const int wanted = elsewhere ? MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
                               : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  const bool registered = syscall(SYS_membarrier, wanted, 0, 0) == 0;
  const int command =
      elsewhere ? MEMBARRIER_CMD_GLOBAL_EXPEDITED : MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  barrier_command = registered ? command : 0;
}

void barrier_all_threads() {
  if (barrier_command != 0 && syscall(SYS_membarrier, barrier_command, 0, 0) == 0) return;
  // Where the kernel has no such call, time does it.
  const timespec pause{0, 10000000};
  nanosleep(&pause, nullptr);
}

}  // namespace collect::agent
