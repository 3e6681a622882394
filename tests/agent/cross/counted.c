/* A program to be traced on another architecture, linked with the agent or with it preloaded. Every
 * traced function counts its own calls, so nothing of the agent's takes part in the count:
 *
 *     thread TID CALLS
 *     frame FUNCTION RETURN_ADDRESS FRAME_POINTER STACK_POINTER
 *
 * The second line is what one call of known_frame saw of itself. `counted [FILE]`: works, waits
 * until the file exists, if one is named, and leaves with 7.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define NOT_TRACED __attribute__((no_instrument_function))

static __thread uint64_t calls;

struct counted {
  long thread_id;
  uint64_t calls;
};

static struct counted threads[THREADS + 1];

NOT_TRACED static void note(struct counted* mine) {
  mine->thread_id = syscall(SYS_gettid);
  mine->calls = calls;
}

__attribute__((noinline)) static uint64_t fibonacci(unsigned n) {
  ++calls;
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) static uint64_t known_frame(uint64_t one, uint64_t two) {
  ++calls;
  uintptr_t stack_pointer;
  __asm__ volatile("mov %0, sp" : "=r"(stack_pointer));
  printf("frame %" PRIxPTR " %" PRIxPTR " %" PRIxPTR " %" PRIxPTR "\n", (uintptr_t)&known_frame,
         (uintptr_t)__builtin_return_address(0), (uintptr_t)__builtin_frame_address(0),
         stack_pointer);
  return one + two;
}

static void* work(void* place) {
  ++calls;
  struct counted* mine = place;
  uint64_t sum = 0;
  for (unsigned i = 0; i < 20; ++i) sum += fibonacci(10 + i % 4);
  note(mine);
  return (void*)(uintptr_t)sum;
}

int main(int argc, char** argv) {
  ++calls;
  pthread_t started[THREADS];
  for (int i = 0; i < THREADS; ++i) {
    if (pthread_create(&started[i], NULL, work, &threads[i + 1]) != 0) return 2;
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(started[i], NULL);
  if (known_frame(40, 2) != 42) return 3;
  note(&threads[0]);
  for (int i = 0; i <= THREADS; ++i) {
    printf("thread %ld %" PRIu64 "\n", threads[i].thread_id, threads[i].calls);
  }
  fflush(stdout);
  const struct timespec pause = {0, 10000000};
  while (argc > 1 && access(argv[1], F_OK) != 0) nanosleep(&pause, NULL);
  return 7;
}
