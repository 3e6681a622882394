/* Programs that end in the middle of things. `crash MODE AFTER`: threads call traced functions
 * without end; when AFTER calls were made, the main thread ends the program:
 *   wait     not at all: someone kills it
 *   segv     writes to address 0
 *   abort    calls abort
 *   kill     sends itself SIGKILL, as the system does when memory is short
 *   memory   takes memory up to a limit of its own, and aborts when there is none
 *   hog      takes 512 MB, and exits with 6 if no one minds
 *   exit     exit(9), with the other threads at work
 *   _exit    _exit(7)
 *   quick    quick_exit(5)
 *   leave    the main thread is gone, and another one aborts
 *   exec     becomes /bin/cat of the file argv[3], without the agent
 *   again    becomes `crash exit AFTER`
 *   fork     makes a child that calls AFTER functions of its own and exits with 4, and continues
 *   stop     detaches by the agent's API, waits for its child processes (it has none), exits with 3
 * The first line of its output is written when AFTER calls were made.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 3

extern char** environ;
static _Atomic uint64_t steps;
static _Atomic int abort_now;

static uint32_t step(uint32_t value) {
  return value * 1664525u + 1013904223u;
}

static uint32_t work(uint32_t value) {
  for (int i = 0; i < 50; ++i) value = step(value);
  atomic_fetch_add_explicit(&steps, 50, memory_order_relaxed);
  return value;
}

static void* keep_working(void* unused) {
  (void)unused;
  uint32_t value = 1;
  for (;;) {
    value = work(value);
    if (abort_now) abort();
    usleep(value % 64);
  }
}

static void use_up_memory(void) {
  const struct rlimit limit = {256 << 20, 256 << 20};
  setrlimit(RLIMIT_AS, &limit);
  for (;;) {
    char* more = malloc(1 << 20);
    if (more == NULL) abort();
    memset(more, 1, 1 << 20);
  }
}

static void take_too_much(void) {
  for (int i = 0; i < 512; ++i) {
    char* more = malloc(1 << 20);
    if (more != NULL) memset(more, 1, 1 << 20);
  }
  exit(6);
}

static void become(const char* program, const char* first, const char* second, char** variables) {
  char* arguments[] = {(char*)program, (char*)first, (char*)second, NULL};
  execve(program, arguments, variables);
  _exit(99);
}

static void make_child(uint64_t after) {
  pid_t child = fork();
  if (child != 0) {
    printf("child %d\n", (int)child);
    fflush(stdout);
    return;
  }
  const uint64_t from = steps;
  uint32_t value = 3;
  while (steps - from < after) value = work(value);
  exit(4);
}

static void stop_agent(void) {
  void (*stop)(uint32_t) = NULL;
  void* found = dlsym(RTLD_DEFAULT, "collect_agent_stop");
  memcpy((void*)&stop, &found, sizeof found);
  if (stop != NULL) stop(20000);
  /* No one that this program did not make is there to be waited for. */
  errno = 0;
  const int none = waitpid(-1, NULL, __WALL) == -1 && errno == ECHILD;
  printf("children: %s\n", none ? "none" : "some");
  exit(3);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const char* mode = argv[1];
  const uint64_t after = strtoull(argv[2], NULL, 10);
  pthread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; ++i) pthread_create(&threads[i], NULL, keep_working, NULL);
  uint32_t value = 2;
  while (steps < after) value = work(value);
  printf("worked\n");
  fflush(stdout);
  if (strcmp(mode, "segv") == 0) *(volatile int*)(uintptr_t)(value & 0) = 1;
  if (strcmp(mode, "abort") == 0) abort();
  if (strcmp(mode, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(mode, "memory") == 0) use_up_memory();
  if (strcmp(mode, "hog") == 0) take_too_much();
  if (strcmp(mode, "exit") == 0) exit(9);
  if (strcmp(mode, "_exit") == 0) _exit(7);
  if (strcmp(mode, "quick") == 0) quick_exit(5);
  char* no_variables[] = {NULL};
  if (strcmp(mode, "exec") == 0) become("/bin/cat", argv[3], NULL, no_variables);
  if (strcmp(mode, "again") == 0) become(argv[0], "exit", argv[2], environ);
  if (strcmp(mode, "fork") == 0) make_child(after);
  if (strcmp(mode, "stop") == 0) stop_agent();
  if (strcmp(mode, "leave") == 0) {
    abort_now = 1;
    pthread_exit(NULL);
  }
  for (;;) value = work(value);
}
