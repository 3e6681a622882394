/* Hooks inside signal handlers. `signals MODE`:
 *   timer     SIGPROF every millisecond of CPU time, its handler calls traced functions
 *   altstack  the same on an alternate stack of the least size
 *   longjmp   the handler leaves with siglongjmp, over traced frames and perhaps over a hook
 *   segv      ends by a real SIGSEGV after its handler has put the default action back
 *   blocked   checks that the mask and the handlers are what the program made them
 * Prints what does not depend on timing.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks;
static sigjmp_buf back;
static volatile sig_atomic_t may_jump;

static int fold(int value) {
  return value * 31 + 7;
}

static void on_tick(int number) {
  (void)number;
  int saved = errno;
  ticks = ticks + 1;
  for (int i = 0; i < 8; ++i) (void)fold(i);
  errno = saved;
}

static void on_tick_jump(int number) {
  (void)number;
  ticks = ticks + 1;
  (void)fold(ticks);
  if (may_jump) siglongjmp(back, 1);
}

static void on_fault(int number) {
  (void)fold(number);
  signal(SIGSEGV, SIG_DFL); /* returning runs the faulting instruction again */
}

static void handle_ticks(void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(SIGPROF, &action, NULL);
  struct itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_PROF, &every, NULL);
}

static void stop_ticks(void) {
  struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_PROF, &never, NULL);
  signal(SIGPROF, SIG_IGN);
}

static uint32_t work(uint32_t rounds) {
  uint32_t value = 1;
  for (uint32_t i = 0; i < rounds; ++i) value = value * 33u + (uint32_t)fold((int)(i & 1023));
  return value;
}

static int ticking(int flags) {
  errno = EXDEV;
  handle_ticks(on_tick, flags);
  uint32_t value = 0;
  /* The work continues until the handler was there often enough; the sum is taken from fixed work.
   */
  while (ticks < 50) value = work(20000);
  stop_ticks();
  printf("value %u, handler ran, errno kept: %s\n", value, errno == EXDEV ? "yes" : "no");
  return errno == EXDEV ? 0 : 1;
}

static int jumping(void) {
  handle_ticks(on_tick_jump, SA_NODEFER);
  volatile int jumps = 0;
  while (jumps < 50) {
    if (sigsetjmp(back, 1) == 0) {
      may_jump = 1;
      for (;;) (void)work(1000);
    }
    may_jump = 0;
    jumps = jumps + 1;
  }
  stop_ticks();
  printf("jumped out of 50 handlers, then worked: %u\n", work(1000));
  return 0;
}

static int unchanged(void) {
  sigset_t blocked, now;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaddset(&blocked, SIGPIPE);
  sigprocmask(SIG_SETMASK, &blocked, NULL);
  (void)work(10000);
  sigprocmask(SIG_SETMASK, NULL, &now);
  int wrong = 0;
  for (int number = 1; number < 32; ++number) {
    struct sigaction action;
    sigaction(number, NULL, &action);
    if (action.sa_handler != SIG_DFL) {
      printf("signal %d has a handler that this program never set\n", number);
      ++wrong;
    }
    int wanted = number == SIGUSR1 || number == SIGPIPE;
    if (sigismember(&now, number) != wanted) {
      printf("signal %d: blocked is not %d\n", number, wanted);
      ++wrong;
    }
  }
  printf("signals as the program made them: %s\n", wrong == 0 ? "yes" : "no");
  return wrong == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "timer";
  if (strcmp(mode, "timer") == 0) return ticking(0);
  if (strcmp(mode, "longjmp") == 0) return jumping();
  if (strcmp(mode, "blocked") == 0) return unchanged();
  if (strcmp(mode, "altstack") == 0) {
    stack_t stack;
    memset(&stack, 0, sizeof stack);
    stack.ss_size = (size_t)sysconf(_SC_MINSIGSTKSZ) + 8192;
    stack.ss_sp = malloc(stack.ss_size);
    if (stack.ss_sp == NULL || sigaltstack(&stack, NULL) != 0) return 3;
    return ticking(SA_ONSTACK);
  }
  if (strcmp(mode, "segv") == 0) {
    signal(SIGSEGV, on_fault);
    for (int i = 0; i < 100; ++i) { /* long enough that a recording is under way */
      (void)work(1000);
      usleep(5000);
    }
    printf("about to fail\n");
    fflush(stdout);
    volatile int* nowhere = NULL;
    return *nowhere; /* NOLINT */
  }
  return 2;
}
