/* A library built with -fxray-instrument: linked, and opened and closed as a plugin. */
#include <stdint.h>

uint64_t library_leaf(uint64_t value);
uint64_t library_work(uint64_t rounds);

__attribute__((noinline)) uint64_t library_leaf(uint64_t value) {
  __asm__ volatile("" : "+r"(value));
  return value * 5 + 1;
}

uint64_t library_work(uint64_t rounds) {
  uint64_t value = 0;
  for (uint64_t i = 0; i < rounds; ++i) value += library_leaf(i);
  return value;
}
