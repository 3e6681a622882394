/* Calls a library that has done much before. With WITH_RESOLVER also while the dynamic linker is at
 * work. */
#include <stdio.h>

void library_work(void);

#if defined(WITH_RESOLVER)
__attribute__((no_instrument_function)) static int seven(void) {
  return 7;
}

__attribute__((no_instrument_function)) static int (*resolve(void))(void) {
  library_work();
  return seven;
}

int indirect(void) __attribute__((ifunc("resolve")));
#else
__attribute__((no_instrument_function)) static int indirect(void) {
  return 7;
}
#endif

__attribute__((constructor)) static void before_main(void) {
  library_work();
}

int main(void) {
  for (int i = 0; i < 99; ++i) library_work();
  printf("early_work 100, library_work 100, %d\n", indirect());
  return 0;
}
