// Threads by clone() that have their parent's thread-local memory, as small runtimes make them.
// `same_tls threads|processes N`: three of them, or processes that share all memory, and the main
// thread call f N times each; then the main thread alone.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kThreads = 3, kStackBytes = 1 << 20 };

static volatile int go;
static volatile int alive[kThreads];
static volatile long calls[kThreads + 1];
static long wanted;

__attribute__((noinline)) void f(long thread) {
  calls[thread] = calls[thread] + 1;
}

__attribute__((no_instrument_function)) static int run(void* argument) {
  const long thread = (long)argument;
  while (!go) {
  }
  for (long i = 0; i < wanted; ++i) f(thread);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  wanted = atol(argv[2]);
  const int are_threads = strcmp(argv[1], "threads") == 0;
  const int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_CHILD_CLEARTID |
                    (are_threads ? CLONE_THREAD | CLONE_SYSVSEM : SIGCHLD);
  for (long i = 0; i < kThreads; ++i) {
    char* stack =
        mmap(NULL, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    alive[i] = 1;
    if (stack == MAP_FAILED ||
        clone(run, stack + kStackBytes, flags, (void*)i, NULL, NULL, &alive[i]) < 0) {
      return 3;
    }
  }
  go = 1;
  for (long i = 0; i < wanted; ++i) f(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    while (alive[i]) usleep(1000);
  }
  for (int i = 0; i < kThreads && !are_threads; ++i) wait(NULL);
  usleep(300000);  // until the agent knows that they are gone; nothing depends on it
  for (long i = 0; i < wanted; ++i) f(kThreads);
  printf("f %ld\n", calls[0] + calls[1] + calls[2] + calls[3]);
  return 0;
}
