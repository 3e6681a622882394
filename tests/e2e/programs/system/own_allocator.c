/* A program with an allocator of its own, which may be entered by the program's threads only: the
 * agent's thread has no business in it. Ends by abort() when it is found there.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* block, size_t bytes);
extern void __libc_free(void* block);

#define NOT_TRACED __attribute__((no_instrument_function))

NOT_TRACED static void check_thread(void) {
  char name[16] = "";
  prctl(PR_GET_NAME, name, 0, 0, 0);
  if (strcmp(name, "collect-drain") != 0) return;
  static const char message[] = "the agent's thread allocates\n";
  (void)!write(STDERR_FILENO, message, sizeof message - 1);
  abort();
}

NOT_TRACED void* malloc(size_t bytes) {
  check_thread();
  return __libc_malloc(bytes);
}
NOT_TRACED void* calloc(size_t count, size_t bytes) {
  check_thread();
  return __libc_calloc(count, bytes);
}
NOT_TRACED void* realloc(void* block, size_t bytes) {
  check_thread();
  return __libc_realloc(block, bytes);
}
NOT_TRACED void free(void* block) {
  if (block != NULL) check_thread();
  __libc_free(block);
}

static uint32_t step(uint32_t value) {
  char* block = malloc(16 + value % 100);
  block[0] = (char)value;
  value = value * 1664525u + (uint32_t)block[0];
  free(block);
  return value;
}

int main(void) {
  uint32_t value = 1;
  for (uint32_t round = 0; round < 1000; ++round) {
    for (uint32_t i = 0; i < 500; ++i) value = step(value);
    usleep(200); /* the agent's thread gets to work meanwhile */
  }
  printf("%u\n", value);
  return 0;
}
