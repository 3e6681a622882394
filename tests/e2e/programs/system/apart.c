/* A process that leaves where it was started, and children that work there. `apart MODE…`, in
 * order: setuid        becomes user 65534 pidns, netns, mntns   a new namespace of that kind
 * (pidns: for the children) chroot        an empty root directory, argv[2]'s word after "chroot="
 * then one of
 *   fork          two children, one after the other forked, both waited for at the end (as in
 *                 servers with workers)
 *   exec          one child that becomes this program again, with "alone"
 *   spawn, vfork  the same by these
 *   alone         works and ends
 *   daemon        a double fork, setsid, close_range of every descriptor; works for a while
 *   linger        works, and then sleeps until it is killed
 * work() is called 7,000 times in each child, 1,000 times before, 3,000 times after the change.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static void work(void) {
  __asm__ volatile("");
}

__attribute__((no_instrument_function)) static void repeat(int times) {
  for (int i = 0; i < times; ++i) work();
}

__attribute__((no_instrument_function)) static int fail(const char* what) {
  printf("%s: %s\n", what, strerror(errno));
  return 77;
}

__attribute__((no_instrument_function)) static void become(const char* self, char** environment) {
  char* const arguments[] = {(char*)self, "alone", NULL};
  execve(self, arguments, environment);
  _exit(77);
}

__attribute__((no_instrument_function)) static void daemonize(void) {
  if (fork() != 0) {
    usleep(1000);
    _exit(0);
  }
  setsid();
  if (fork() != 0) _exit(0);
  syscall(SYS_close_range, 0u, ~0u, 0u);
  for (int i = 0; i < 10; ++i) {
    repeat(700);
    usleep(20000);
  }
  exit(0);
}

__attribute__((no_instrument_function)) static int run_children(const char* mode,
                                                                const char* self) {
  if (strcmp(mode, "alone") == 0) {
    repeat(7000);
  } else if (strcmp(mode, "fork") == 0) {
    for (int i = 0; i < 2; ++i) {
      if (fork() != 0) continue;
      repeat(7000);
      exit(0);
    }
  } else if (strcmp(mode, "exec") == 0 || strcmp(mode, "clear") == 0) {
    char* none[] = {NULL};
    if (fork() == 0) become(self, strcmp(mode, "clear") == 0 ? none : environ);
  } else if (strcmp(mode, "vfork") == 0) {
    if (vfork() == 0) become(self, environ);
  } else if (strcmp(mode, "spawn") == 0) {
    pid_t child = 0;
    char* const arguments[] = {(char*)self, "alone", NULL};
    if (posix_spawn(&child, self, NULL, NULL, arguments, environ) != 0) return fail("spawn");
  } else if (strcmp(mode, "linger") == 0) {
    puts("lingers");
    fflush(stdout);
    for (;;) pause();
  } else if (strcmp(mode, "daemon") == 0) {
    daemonize();
  } else {
    return fail("mode");
  }
  while (wait(NULL) > 0) {
  }
  return 0;
}

__attribute__((no_instrument_function)) int main(int count, char** words) {
  if (count == 2 && strcmp(words[1], "alone") == 0) {
    repeat(7000);
    return 0;
  }
  repeat(1000);
  int result = 0;
  for (int i = 1; i < count && result == 0; ++i) {
    const char* word = words[i];
    if (strcmp(word, "setuid") == 0) {
      if (setgroups(0, NULL) != 0 || setresgid(65534, 65534, 65534) != 0 ||
          setresuid(65534, 65534, 65534) != 0) {
        return fail(word);
      }
    } else if (strcmp(word, "pidns") == 0) {
      if (unshare(CLONE_NEWPID) != 0) return fail(word);
    } else if (strcmp(word, "netns") == 0) {
      if (unshare(CLONE_NEWNET) != 0) return fail(word);
    } else if (strcmp(word, "mntns") == 0) {
      if (unshare(CLONE_NEWNS) != 0) return fail(word);
    } else if (strncmp(word, "chroot=", 7) == 0) {
      if (chroot(word + 7) != 0 || chdir("/") != 0) return fail(word);
    } else {
      repeat(3000);
      result = run_children(word, words[0]);
    }
  }
  return result;
}
