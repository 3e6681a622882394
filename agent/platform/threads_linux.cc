// Linux and Android. Android's seccomp filter of apps lets all of these calls through: membarrier
// since Android 10, which the agent needs in any case.
#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/platform/system.h"
#include "agent/platform/threads.h"
#include "agent/text.h"

namespace collect::agent {
namespace {

int barrier_command = 0;  // 0: the kernel has none

ssize_t read_of_thread(pid_t process, uint32_t thread_id, const char* name, char* out,
                       size_t bytes) {
  char path[64];
  Text text(path, sizeof path);
  text.add("/proc/");
  if (process != 0) {
    text.number(static_cast<uint64_t>(process));
  } else {
    text.add("self");  // a process may not know its number in this /proc
  }
  text.add("/task/").number(thread_id).add(name);
  const int file = sys::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const ssize_t got = sys::read(file, out, bytes);
  (void)sys::close(file);
  return got;
}

// Numbers of a thread's seccomp filters, as its status says.
constexpr uint64_t kNoFilter = 0;
constexpr uint64_t kNotCounted = UINT64_MAX;
struct Filters {
  bool is_readable = false;
  uint64_t mode = kNoFilter;
  uint64_t count = kNotCounted;
};
Filters filters_at_start;

// The number behind a field's name; false: there is no such field.
bool take_field(const char* text, const char* name, uint64_t& value) {
  const size_t bytes = strlen(name);
  for (const char* line = text; line != nullptr; line = strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (strncmp(line, name, bytes) != 0) continue;
    const char* digit = line + bytes;
    while (*digit == '\t' || *digit == ' ') ++digit;
    for (value = 0; *digit >= '0' && *digit <= '9'; ++digit) {
      value = value * 10 + static_cast<uint64_t>(*digit - '0');
    }
    return true;
  }
  return false;
}

Filters read_filters(pid_t process, uint32_t thread_id) {
  char text[4096];
  const ssize_t bytes = read_of_thread(process, thread_id, "/status", text, sizeof text - 1);
  if (bytes <= 0) return {};
  text[bytes] = '\0';
  Filters found;
  // The field that comes after both, in every kernel: cut before it, nothing is known.
  uint64_t after = 0;
  found.is_readable = take_field(text, "voluntary_ctxt_switches:", after);
  (void)take_field(text, "Seccomp:", found.mode);
  (void)take_field(text, "Seccomp_filters:", found.count);
  return found;
}

#if !defined(__ANDROID__)
// Where glibc (since 2.4) and musl keep a thread's number, from what pthread_self() is on. Taken
// for true only where the thread that starts the agent has its own there.
#if defined(__x86_64__)
[[maybe_unused]] constexpr uint32_t kGlibcOffset = 720;
[[maybe_unused]] constexpr uint32_t kMuslOffset = 48;
#else
[[maybe_unused]] constexpr uint32_t kGlibcOffset = 208;
[[maybe_unused]] constexpr uint32_t kMuslOffset = 32;
#endif
#if defined(__GLIBC__)
constexpr uint32_t kIdOffset = kGlibcOffset;
#else
constexpr uint32_t kIdOffset = kMuslOffset;
#endif
bool id_is_kept = false;

uint32_t kept_id() {
  uint32_t id;
  memcpy(&id, reinterpret_cast<const char*>(pthread_self()) + kIdOffset, sizeof id);
  return id;
}
#endif

}  // namespace

#if defined(__ANDROID__)

uint32_t os_thread_id() {
  return static_cast<uint32_t>(gettid());  // from the thread's own memory
}
void find_thread_ids() {}

#else

void find_thread_ids() {
  id_is_kept = kept_id() == static_cast<uint32_t>(sys::call(SYS_gettid));
}

uint32_t os_thread_id() {
  if (id_is_kept) return kept_id();
  return static_cast<uint32_t>(sys::call(SYS_gettid));
}

#endif

bool read_thread_name(pid_t process, uint32_t thread_id, char* out, size_t out_bytes) {
  const ssize_t bytes = read_of_thread(process, thread_id, "/comm", out, out_bytes - 1);
  if (bytes <= 0) return false;  // gone already: what was read before stays
  out[out[bytes - 1] == '\n' ? bytes - 1 : bytes] = '\0';
  return true;
}

bool read_thread_times(pid_t process, uint32_t thread_id, ThreadTimes& times) {
  char text[96];
  const ssize_t bytes = read_of_thread(process, thread_id, "/schedstat", text, sizeof text - 1);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  const char* at = text;
  for (uint64_t* value : {&times.run_ns, &times.wait_ns, &times.slices}) {
    if (*at < '0' || *at > '9') return false;
    for (*value = 0; *at >= '0' && *at <= '9'; ++at) {
      *value = *value * 10 + static_cast<uint64_t>(*at - '0');
    }
    if (*at == ' ') ++at;
  }
  return true;
}

LivingThreads::LivingThreads(pid_t process) : process_(process) {}
LivingThreads::~LivingThreads() = default;

bool LivingThreads::contains(uint32_t thread_id) const {
  return sys::call(SYS_tgkill, process_, thread_id, 0) != -1 || errno != ESRCH;
}

bool was_filtered() {
  return !filters_at_start.is_readable || filters_at_start.mode != kNoFilter;
}

void note_filters() {
  filters_at_start = read_filters(0, static_cast<uint32_t>(sys::call(SYS_gettid)));
}

bool is_filtered(pid_t process, uint32_t thread_id) {
  if (!filters_at_start.is_readable) return false;
  const Filters now = read_filters(process, thread_id);
  if (now.mode == kNoFilter) return false;
  // Kernels before 5.9 do not count them.
  return !now.is_readable || now.mode != filters_at_start.mode || now.count == kNotCounted ||
         now.count != filters_at_start.count;
}

bool only_this_thread_left() {
  struct stat tasks;
  // A folder for each thread, and two links of its own: an ended main thread keeps its folder.
  if (sys::stat("/proc/self/task", &tasks) != 0 || tasks.st_nlink > 4) return false;
  const int file = sys::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  char text[256];
  const ssize_t bytes = sys::read(file, text, sizeof text - 1);
  (void)sys::close(file);
  if (bytes <= 0) return false;
  text[bytes] = '\0';
  // "pid (name) state …": the name may hold anything, so the state is found from its end.
  const char* name_end = strrchr(text, ')');
  return name_end != nullptr && name_end[1] == ' ' && name_end[2] == 'Z';
}

uint64_t voluntary_switches() {
  rusage usage;
  return sys::getrusage(RUSAGE_THREAD, &usage) == 0 ? static_cast<uint64_t>(usage.ru_nvcsw) : 0;
}

// This process's own threads or, from the drain process, those of every process that registered for
// it.
void register_barrier(bool elsewhere) {
  const int wanted = elsewhere ? MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED
                               : MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  const bool registered = sys::call(SYS_membarrier, wanted, 0, 0) == 0;
  const int command =
      elsewhere ? MEMBARRIER_CMD_GLOBAL_EXPEDITED : MEMBARRIER_CMD_PRIVATE_EXPEDITED;
  barrier_command = registered ? command : 0;
}

void barrier_all_threads() {
  if (barrier_command != 0 && sys::call(SYS_membarrier, barrier_command, 0, 0) == 0) return;
  // Where the kernel has no such call, time does it.
  const timespec pause{0, 10000000};
  sys::nanosleep(&pause, nullptr);
}

}  // namespace collect::agent
