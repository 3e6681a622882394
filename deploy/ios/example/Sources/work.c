#include "work.h"

static unsigned fibonacci(unsigned n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

unsigned example_work(unsigned n) {
  return fibonacci(n);
}
