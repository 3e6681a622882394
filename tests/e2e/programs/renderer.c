// What the examples of daemon/control/CONTROL.md are about: one thread that draws a line once a
// millisecond and parses, for 6 ms, after every twentieth. `renderer MS`: for so many milliseconds
// of its clock.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t lines;

__attribute__((noinline)) static void draw_line(void) {
  ++lines;
}

__attribute__((noinline)) static void parse_scene(void) {
  usleep(6000);
}

__attribute__((no_instrument_function)) static uint64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  for (const uint64_t end = now_ms() + strtoull(argv[1], NULL, 10); now_ms() < end;) {
    draw_line();
    usleep(1000);
    if (lines % 20 == 0) parse_scene();
  }
  printf("%llu lines\n", (unsigned long long)lines);
  return 0;
}
