// A chain of calls, each of which makes the next, eight deep below main, or DEEP, so many times
// over; or, with `jump`, the innermost leaves the chain by longjmp. `depths ROUNDS [jump | DEEP]`
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static volatile uint64_t steps;
static jmp_buf start;
static int jumps, deep = 8;

__attribute__((noinline)) static void chain(int left) {
  ++steps;
  if (left > 1) chain(left - 1);
  if (left == 1 && jumps) longjmp(start, 1);
  ++steps;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  jumps = argc > 2 && strcmp(argv[2], "jump") == 0;
  if (argc > 2 && !jumps) deep = atoi(argv[2]);
  const long rounds = strtol(argv[1], NULL, 10);
  for (volatile long i = 0; i < rounds; ++i) {
    if (setjmp(start) == 0) chain(deep);
  }
  return 0;
}
