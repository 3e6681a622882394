/* A child that sees another root directory from before its first event on, and says nothing of
 * where its files are on this machine. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

__attribute__((noinline)) void work_of_parent(void) {
  __asm__ volatile("");
}

__attribute__((noinline)) void work_in_jail(void) {
  __asm__ volatile("");
}

__attribute__((no_instrument_function)) int main(int count, char** words) {
  if (count != 2) return 2;
  work_of_parent();
  const pid_t child = fork();
  if (child == 0) {
    if (chroot(words[1]) != 0 || chdir("/") != 0) _exit(3);
    for (int i = 0; i < 100; ++i) work_in_jail();
    _exit(4);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child) return 5;
  printf("%d %d\n", (int)child, WEXITSTATUS(status));
  return 0;
}
