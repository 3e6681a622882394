/* Functions that are not instrumented do the work of those that are: prints what each took of the
 * processor, in nanoseconds.
 *
 * Usage: sampled
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#define PLAIN __attribute__((noinline, no_instrument_function))

PLAIN static uint64_t cpu_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

PLAIN static void count_up(uint64_t rounds) {
  for (volatile uint64_t i = 0; i < rounds; ++i) {
  }
}
PLAIN static void count_down(uint64_t rounds) {
  for (volatile uint64_t i = rounds; i > 0; --i) {
  }
}

static void add(void) {
  count_up(150000000);
}
static void take(void) {
  count_down(75000000);
}

static void* other(void* argument) {
  const uint64_t begin_ns = cpu_ns();
  count_up(75000000);
  *(uint64_t*)argument = cpu_ns() - begin_ns;
  return NULL;
}

int main(void) {
  uint64_t other_ns = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, other, &other_ns) != 0) return 1;
  const uint64_t begin_ns = cpu_ns();
  add();
  const uint64_t middle_ns = cpu_ns();
  take();
  const uint64_t end_ns = cpu_ns();
  pthread_join(thread, NULL);
  printf("main,add,count_up %llu\n", (unsigned long long)(middle_ns - begin_ns));
  printf("main,take,count_down %llu\n", (unsigned long long)(end_ns - middle_ns));
  printf("other,count_up %llu\n", (unsigned long long)other_ns);
  return 0;
}
