// Preloaded into a program: its wall clock is ahead by WRONG_CLOCK_SECONDS, which may be negative.
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec* time) {
  const int result = (int)syscall(SYS_clock_gettime, clock, time);
  const char* const ahead = getenv("WRONG_CLOCK_SECONDS");
  if (result == 0 && clock == CLOCK_REALTIME && ahead != NULL) time->tv_sec += atol(ahead);
  return result;
}
