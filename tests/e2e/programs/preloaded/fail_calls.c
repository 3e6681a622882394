// Preloaded into a program: its calls of one kind fail from the nth on, FAIL_COUNT of them, as
// where this machine has no more. FAIL_CALL is memory (allocations of FAIL_BYTES and more) or open.
// SIGUSR2 begins the count again, each time with the next n: 1, 2, 3, … Each call that fails is a
// line of the error output. Allocations of gRPC's own threads do not fail: the library ends its
// program where it has no memory, or writes through a null pointer.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* old, size_t bytes);

static atomic_long g_round;
static atomic_long g_calls = 1L << 40;  // until they fail; not before the first signal
static long g_count = 1;
static size_t g_bytes = 1;
static const char* g_call = "";

static void begin_round(int number) {
  (void)number;
  atomic_store(&g_calls, atomic_fetch_add(&g_round, 1) + 1);
}

__attribute__((constructor)) static void read_settings(void) {
  const char* const call = getenv("FAIL_CALL");
  if (call == NULL) return;
  g_call = call;
  if (getenv("FAIL_COUNT") != NULL) g_count = atol(getenv("FAIL_COUNT"));
  if (getenv("FAIL_BYTES") != NULL) g_bytes = (size_t)atol(getenv("FAIL_BYTES"));
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = begin_round;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR2, &action, NULL);
}

static int is_of_grpc(void) {
  static const char* const kThreads[] = {"nexting_thread", "event_engine",    "grpc",
                                         "default-execut", "resolver-execut", "timer_manager"};
  char name[16] = "";
  prctl(PR_GET_NAME, name, 0, 0, 0);
  for (size_t i = 0; i < sizeof kThreads / sizeof *kThreads; ++i) {
    if (strncmp(name, kThreads[i], strlen(kThreads[i])) == 0) return 1;
  }
  return 0;
}

static int fails(const char* call) {
  if (strcmp(call, g_call) != 0) return 0;
  if (strcmp(call, "memory") == 0 && is_of_grpc()) return 0;
  const long left = atomic_fetch_sub(&g_calls, 1);
  if (left > 1 || left <= 1 - g_count) return 0;
  static const char said[] = "fail_calls: one failed\n";
  (void)!write(STDERR_FILENO, said, sizeof said - 1);
  return 1;
}

void* malloc(size_t bytes) {
  if (bytes >= g_bytes && fails("memory")) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) {
  if (count * bytes >= g_bytes && fails("memory")) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) {
  if (bytes >= g_bytes && fails("memory")) {
    errno = ENOMEM;
    return NULL;
  }
  return __libc_realloc(old, bytes);
}

static int open_one(int directory, const char* path, int flags, va_list more) {
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
  if (fails("open")) {
    errno = EMFILE;
    return -1;
  }
  return (int)syscall(SYS_openat, directory, path, flags, mode);
}

#define OPEN(name)                                          \
  int name(const char* path, int flags, ...) {              \
    va_list more;                                           \
    va_start(more, flags);                                  \
    const int file = open_one(AT_FDCWD, path, flags, more); \
    va_end(more);                                           \
    return file;                                            \
  }
#define OPENAT(name)                                          \
  int name(int directory, const char* path, int flags, ...) { \
    va_list more;                                             \
    va_start(more, flags);                                    \
    const int file = open_one(directory, path, flags, more);  \
    va_end(more);                                             \
    return file;                                              \
  }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
