// Works, and asks nothing of the C library that another library may have taken over.
#include <stdlib.h>

static volatile long sum;

__attribute__((noinline)) void f(long i) {
  sum = sum + i;
}

// Before its end the data are on their way: the drain is at work while the program is.
int main(int argc, char** argv) {
  const long calls = argc > 1 ? atol(argv[1]) : 1000000;
  for (long i = 0; i < calls; ++i) f(i);
  return 7;
}
