// A program that forbids itself most of what the system offers, and then works.
// `filtered none|strict|kill|errno N`: f is called 1,000 times before and N times after.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) long f(long x) {
  return x + 1;
}

static int filter(unsigned otherwise) {
  const int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_rt_sigreturn};
  struct sock_filter program[16];
  unsigned count = 0;
  const unsigned numbers = sizeof allowed / sizeof *allowed;
  program[count++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (unsigned i = 0; i < numbers; ++i) {
    program[count++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i],
                                                    (unsigned char)(numbers - i), 0);
  }
  program[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
  program[count++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog given = {(unsigned short)count, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &given);
}

static int forbid(const char* how) {
  if (strcmp(how, "strict") == 0) return prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
  if (strcmp(how, "kill") == 0) return filter(SECCOMP_RET_KILL_PROCESS);
  if (strcmp(how, "errno") == 0) return filter(SECCOMP_RET_ERRNO | 1);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long calls = atol(argv[2]);
  long done = 0;
  for (int i = 0; i < 1000; ++i) done = f(done);
  if (forbid(argv[1]) != 0) return 3;
  for (long i = 0; i < calls; ++i) done = f(done);
  char text[32] = "done ";
  char digits[24];
  unsigned count = 0;
  unsigned at = 5;
  for (long rest = done; rest != 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) text[at++] = digits[--count];
  text[at++] = '\n';
  if (write(STDOUT_FILENO, text, at) != (ssize_t)at) return 4;
  // Strict mode knows no exit_group, with which exit() ends.
  if (strcmp(argv[1], "strict") == 0) syscall(SYS_exit, 0);
  return 0;
}
