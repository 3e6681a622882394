/* fork, exec and their relatives in a program with several threads. `forks MODE`:
 *   work      the child continues working and exits
 *   quick     the child leaves by _exit after some work
 *   killed    the child kills itself
 *   exec      the child becomes another program
 *   vfork     the same by vfork
 *   spawn     the same by posix_spawn
 *   daemonize double fork and setsid; the grandchild writes its answer into the file argv[2]
 * The parent's other threads call traced functions all the while.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORKERS 3
#define CHILDREN 5

extern char** environ;
static atomic_int stop;

static uint32_t step(uint32_t value) {
  return value * 1664525u + 1013904223u;
}

static uint32_t work(uint32_t rounds) {
  uint32_t value = 1;
  for (uint32_t i = 0; i < rounds; ++i) value = step(value);
  return value;
}

static void* keep_busy(void* unused) {
  (void)unused;
  while (!atomic_load(&stop)) {
    (void)work(200);
    usleep(1000);
  }
  return NULL;
}

/* What the child's end looks like: a wait status without its timing. */
static void print_end(const char* what, pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) {
    printf("%s: not waited for\n", what);
  } else if (WIFEXITED(status)) {
    printf("%s: exit %d\n", what, WEXITSTATUS(status));
  } else {
    printf("%s: signal %d\n", what, WTERMSIG(status));
  }
}

static void run_child(const char* mode) {
  char* arguments[] = {(char*)"echo", (char*)"the other program", NULL};
  fflush(stdout);
  pid_t child = 0;
  if (strcmp(mode, "spawn") == 0) {
    if (posix_spawn(&child, "/bin/echo", NULL, NULL, arguments, environ) != 0) child = -1;
  } else if (strcmp(mode, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execve("/bin/echo", arguments, environ);
      _exit(99);
    }
  } else {
    child = fork();
    if (child == 0) {
      uint32_t value = work(5000);
      if (strcmp(mode, "exec") == 0) {
        execve("/bin/echo", arguments, environ);
        _exit(99);
      }
      if (strcmp(mode, "quick") == 0) _exit(17);
      if (strcmp(mode, "killed") == 0) kill(getpid(), SIGKILL);
      printf("child worked: %u\n", value);
      exit(21);
    }
  }
  if (child < 0) {
    printf("no child\n");
    return;
  }
  print_end(mode, child);
}

static int daemonize(const char* answer) {
  pid_t child = fork();
  if (child != 0) {
    print_end("first child", child);
    /* The grandchild says that it is done by renaming its file into place. */
    for (int i = 0; i < 2000 && access(answer, R_OK) != 0; ++i) usleep(5000);
    FILE* file = fopen(answer, "r");
    char line[128] = "no answer";
    if (file != NULL && fgets(line, sizeof line, file) == NULL) line[0] = '\0';
    if (file != NULL) fclose(file);
    printf("daemon: %s\n", line);
    return 0;
  }
  setsid();
  if (fork() != 0) _exit(0);
  /* As daemon(3) does. */
  int nothing = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3; ++fd) dup2(nothing, fd);
  char temporary[4096];
  snprintf(temporary, sizeof temporary, "%s.new", answer);
  FILE* file = fopen(temporary, "w");
  if (file == NULL) exit(1);
  fprintf(file, "worked %u", work(5000));
  fclose(file);
  rename(temporary, answer);
  exit(0);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "work";
  if (strcmp(mode, "daemonize") == 0) return argc > 2 ? daemonize(argv[2]) : 2;
  pthread_t threads[WORKERS];
  for (int i = 0; i < WORKERS; ++i) pthread_create(&threads[i], NULL, keep_busy, NULL);
  for (int i = 0; i < CHILDREN; ++i) run_child(mode);
  atomic_store(&stop, 1);
  for (int i = 0; i < WORKERS; ++i) pthread_join(threads[i], NULL);
  printf("parent worked: %u\n", work(5000));
  return 3;
}
