/* Small things that a guest may not disturb: errno, the output, the environment, the name of the
 * process, its threads and its children. `manners` prints them. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int nothing(int value) {
  return value;
}

static int errno_is_kept(int expected) {
  errno = expected;
  for (int i = 0; i < 1000; ++i) (void)nothing(i);
  return errno == expected;
}

static void* on_thread(void* kept) {
  *(int*)kept = errno_is_kept(ENOTTY); /* with this thread's first event */
  return NULL;
}

int main(void) {
  int on_main = 1;
  for (int i = 0; i < 200; ++i) on_main &= errno_is_kept(i % 130 + 1);
  int in_thread = 0;
  pthread_t thread;
  pthread_create(&thread, NULL, on_thread, &in_thread);
  pthread_join(thread, NULL);
  char name[17] = "";
  prctl(PR_GET_NAME, name);
  errno = 0;
  pid_t stray = waitpid(-1, NULL, WNOHANG); /* no children that the program did not make */
  int no_children = stray == -1 && errno == ECHILD;
  struct rlimit core;
  getrlimit(RLIMIT_CORE, &core);
  printf("errno kept: main %d, thread %d; name %s; no children: %d; nice %d; dumpable %d\n",
         on_main, in_thread, name, no_children, getpriority(PRIO_PROCESS, 0),
         prctl(PR_GET_DUMPABLE));
  return on_main && in_thread ? 0 : 1;
}
