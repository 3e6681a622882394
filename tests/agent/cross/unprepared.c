/* A program that no one prepared: built with optimization, with signed return addresses and landing
 * pads, and stripped. Every function counts its own calls, so nothing of the agent's takes part in
 * the count:
 *
 *     thread TID CALLS
 *     wrong NUMBER of registers that a call did not keep, and of other results
 *     result VALUE... of each thread
 *
 * `unprepared [FILE]`: works until the file exists, if one is named, and leaves with 7. */
#include <inttypes.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define THREADS 4
#define APART __attribute__((noinline, noclone))

static __thread uint64_t calls;
static uint64_t counts[THREADS + 1];
static long ids[THREADS + 1];
static int wrong;
static const char* goes_on_until; /* there is this file; or null */

/* unprepared_registers.S */
struct registers {
  uint64_t general[32]; /* x0 to x28 */
  unsigned char vectors[32][16];
  uint64_t flags;
};
void registers_after_call(struct registers* after);

/* With a sum, the compiler would make a loop of one of the two. */
static APART uint64_t both_before(unsigned n) {
  ++calls;
  return n < 2 ? n : both_before(n - 1) ^ (both_before(n - 2) << 1);
}

/* Each ends by a jump to the other one. */
static APART int is_odd(unsigned n);
static APART int is_even(unsigned n) {
  ++calls;
  return n == 0 ? 1 : is_odd(n - 1);
}
static APART int is_odd(unsigned n) {
  ++calls;
  return n == 0 ? 0 : is_even(n - 1);
}

static APART int add_one(int n) {
  ++calls;
  return n + 1;
}
static APART int twice(int n) {
  ++calls;
  return 2 * n;
}
static int (*const volatile chosen[])(int) = {add_one, twice};
/* Ends by a jump through a register. */
static APART int by_pointer(unsigned which, int n) {
  ++calls;
  return chosen[which % 2](n);
}

/* A table of jumps, and many returns. */
static APART int choose(int which, int n) {
  ++calls;
  switch (which) {
    case 0:
      return n * 3;
    case 1:
      return n ^ 0x55;
    case 2:
      return by_pointer((unsigned)n, n);
    case 3:
      return n / 7;
    case 4:
      return -n;
    case 5:
      return n | 12;
    case 6:
      return add_one(n) + twice(n);
    case 7:
      return n % 9;
    default:
      return 0;
  }
}

static APART double mix(double a, double b, float c, double d, double e, double f, double g,
                        double h, long n) {
  ++calls;
  return a + 2 * b + 4 * (double)c + 8 * d + 16 * e + 32 * f + 64 * g + 128 * h + (double)n;
}

struct pair {
  uint64_t first;
  double second;
};
static APART struct pair both(uint64_t n) {
  ++calls;
  return (struct pair){n * n, (double)n / 4};
}

static APART int by_size(const void* one, const void* other) {
  ++calls;
  const int a = *(const int*)one, b = *(const int*)other;
  return a < b ? -1 : a > b;
}

static APART long sum_of(const int* from, int count) {
  ++calls;
  if (__builtin_expect(count < 0, 0)) {
    fprintf(stderr, "never\n");
    abort();
  }
  long sum = 0;
  for (int i = 0; i < count; ++i) sum += from[i] * (long)i;
  return sum;
}

static APART int lost_registers(void) {
  ++calls;
  struct registers after;
  memset(&after, 0, sizeof after);
  ++calls; /* of the function that it calls */
  registers_after_call(&after);
  int lost = 0;
  for (uint64_t i = 0; i < 29; ++i) lost += after.general[i] != i * 257;
  for (int i = 0; i < 32; ++i) {
    for (int byte = 0; byte < 16; ++byte) lost += after.vectors[i][byte] != i + 1;
  }
  return lost + (after.flags != 0x90000000);
}

static APART uint64_t round_of_work(void) {
  ++calls;
  uint64_t sum = 0;
  for (unsigned i = 0; i < 12; ++i) sum += both_before(10 + i % 4);
  for (int i = 0; i < 400; ++i) sum += (uint64_t)choose(i % 9, i) & 0xFF;
  int numbers[300];
  for (int i = 0; i < 300; ++i) numbers[i] = (i * 7919) % 1009;
  qsort(numbers, 300, sizeof *numbers, by_size);
  sum += (uint64_t)sum_of(numbers, 300);
  sum += (uint64_t)is_even(1000) + (uint64_t)is_odd(77);
  sum += (uint64_t)mix(1, 2, 3, 4, 5, 6, 7, 8, 9);
  const struct pair pair = both(sum);
  sum += pair.first + (uint64_t)pair.second;
  for (int i = 0; i < 20; ++i) __atomic_fetch_add(&wrong, lost_registers(), __ATOMIC_RELAXED);
  return sum;
}

static APART void* work(void* place) {
  ++calls;
  const long n = (long)place;
  const uint64_t sum = round_of_work();
  while (goes_on_until != NULL && access(goes_on_until, F_OK) != 0) {
    if (round_of_work() != sum) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
  }
  counts[n] = calls;
  ids[n] = syscall(SYS_gettid);
  return (void*)(uintptr_t)sum;
}

int main(int argc, char** argv) {
  ++calls;
  if (argc > 1) goes_on_until = argv[1];
  pthread_t started[THREADS];
  for (long i = 0; i < THREADS; ++i) {
    if (pthread_create(&started[i], NULL, work, (void*)(i + 1)) != 0) return 2;
  }
  printf("result");
  for (int i = 0; i < THREADS; ++i) {
    void* result;
    pthread_join(started[i], &result);
    printf(" %" PRIu64, (uint64_t)(uintptr_t)result);
  }
  printf(" %" PRIu64 "\n", (uint64_t)(uintptr_t)work(NULL));
  printf("wrong %d\n", wrong);
  for (int i = 0; i <= THREADS; ++i) printf("thread %ld %" PRIu64 "\n", ids[i], counts[i]);
  return 7;
}
