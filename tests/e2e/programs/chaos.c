/* A program whose every event can be foretold: iteration i of a thread calls leaf_N, where N
 * follows from i alone, so event 2i is the call and event 2i + 1 the return. How far each thread
 * came is in a file that is mapped shared, and so outlives any end of the process.
 *
 *     chaos PROGRESS_FILE THREADS [ITERATIONS]
 *
 * Runs until SIGTERM, or until each thread has done its iterations. One slot of the file for each
 * thread: begun, done (iterations), thread id, 0.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOT_TRACED __attribute__((no_instrument_function))
#define MAX_THREADS 64

struct slot {
  _Atomic uint64_t begun;
  _Atomic uint64_t done;
  _Atomic uint64_t thread_id;
  uint64_t unused;
};

static struct slot* slots;
static uint64_t iterations;
static _Atomic int should_end;

/* Ends with a declaration of something that is there, so that a semicolon can follow. */
#define LEAF(n)                                   \
  __attribute__((noinline)) void leaf_##n(void);  \
  __attribute__((noinline)) void leaf_##n(void) { \
    __asm__ volatile("" ::: "memory");            \
  }                                               \
  struct slot
LEAF(0);
LEAF(1);
LEAF(2);
LEAF(3);
LEAF(4);
LEAF(5);
LEAF(6);
LEAF(7);
LEAF(8);
LEAF(9);
LEAF(10);
LEAF(11);
LEAF(12);
LEAF(13);
LEAF(14);
LEAF(15);

static void (*const leaves[16])(void) = {leaf_0,  leaf_1,  leaf_2,  leaf_3, leaf_4,  leaf_5,
                                         leaf_6,  leaf_7,  leaf_8,  leaf_9, leaf_10, leaf_11,
                                         leaf_12, leaf_13, leaf_14, leaf_15};

NOT_TRACED static void on_term(int number) {
  (void)number;
  should_end = 1;
}

NOT_TRACED static void* work(void* argument) {
  struct slot* mine = argument;
  mine->thread_id = (uint64_t)syscall(SYS_gettid);
  for (uint64_t i = 0; i < iterations && !should_end; ++i) {
    atomic_store_explicit(&mine->begun, i + 1, memory_order_relaxed);
    /* The upper bits of a multiplicative hash: looks random, and a test computes it too. */
    leaves[(i * 0x9E3779B97F4A7C15ull) >> 60]();
    atomic_store_explicit(&mine->done, i + 1, memory_order_relaxed);
    if (i % 2000 == 1999) {
      struct timespec pause = {0, 10000000 + (long)(i / 2000 % 7) * 3000000};
      nanosleep(&pause, NULL);
    }
  }
  return NULL;
}

NOT_TRACED int main(int argc, char** argv) {
  if (argc < 3) return 2;
  int threads = atoi(argv[2]);
  if (threads < 1 || threads > MAX_THREADS) return 2;
  iterations = argc > 3 ? strtoull(argv[3], NULL, 10) : UINT64_MAX;
  int file = open(argv[1], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  size_t bytes = sizeof(struct slot) * (size_t)threads;
  if (file < 0 || ftruncate(file, (off_t)bytes) != 0) return 3;
  slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (slots == MAP_FAILED) return 3;
  struct sigaction action = {.sa_handler = on_term, .sa_flags = SA_RESTART};
  sigaction(SIGTERM, &action, NULL);
  pthread_t ids[MAX_THREADS];
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&ids[i], NULL, work, &slots[i]) != 0) return 4;
  }
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  return 0;
}
