// One thread that calls one function, and has a counter "steps" where an agent is loaded; words
// behind these are passed by. `steady fill N`: N times, as fast as it can. `steady pace MS`: once a
// millisecond, for so many milliseconds of its clock, or until SIGUSR2. `steady burst MS N`: N
// times a millisecond; where it can't keep up, as fast as it can; SIGUSR2 ends it, too.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t steps;
static volatile sig_atomic_t is_enough;

__attribute__((no_instrument_function)) static void on_enough(int number) {
  (void)number;
  is_enough = 1;
}

__attribute__((noinline)) static void step(void) {
  ++steps;
}

__attribute__((no_instrument_function)) static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  void (*set_counter)(const char*, int64_t);
  void* const found = dlsym(RTLD_DEFAULT, "collect_counter");
  memcpy(&set_counter, &found, sizeof found);  // ISO C has no conversion
  const uint64_t wanted = strtoull(argv[2], NULL, 10);
  signal(SIGUSR2, on_enough);
  if (strcmp(argv[1], "fill") == 0) {
    for (uint64_t i = 0; i < wanted; ++i) step();
  } else if (strcmp(argv[1], "burst") == 0 && argc > 3) {
    const uint64_t each = strtoull(argv[3], NULL, 10);
    const uint64_t begin = now_ms();
    for (uint64_t ms = 0; ms < wanted && !is_enough; ++ms) {
      for (uint64_t i = 0; i < each; ++i) step();
      if (begin + ms >= now_ms()) usleep(1000);
    }
  } else {
    for (const uint64_t end = now_ms() + wanted; now_ms() < end && !is_enough;) {
      step();
      if (set_counter) set_counter("steps", (int64_t)steps);
      usleep(1000);
    }
  }
  printf("%llu steps\n", (unsigned long long)steps);
  return 0;
}
