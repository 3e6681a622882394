/* The counter for programs that crash: as call_counter.c, but its counts are in a file that the
 * program maps, so that they outlive it. $COUNT_SHARED.<pid> is an array of
 *     u32 thread id, u32 unused, u64 begun, u64 done
 * for each thread: hooks that were entered, and hooks that came back from the agent. A thread that
 * was killed in between was in the middle of one event.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 1024

typedef void (*hook)(void*, void*);

struct thread_count {
  _Atomic uint32_t thread_id;
  uint32_t unused;
  _Atomic uint64_t begun;
  _Atomic uint64_t done;
};

static struct thread_count* counts;
static _Atomic uint32_t threads_used;
static __thread struct thread_count* own;
static _Atomic(hook) next_enter, next_exit;

static void map_counts(void) {
  const char* path = getenv("COUNT_SHARED");
  if (path == NULL) abort();
  char full[4096];
  snprintf(full, sizeof full, "%s.%d", path, (int)getpid());
  const size_t bytes = sizeof(struct thread_count) * MAX_THREADS;
  int fd = open(full, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  /* An exec begins again under the same number: it adds to what is there. */
  if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0) abort();
  counts = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (counts == MAP_FAILED) abort();
  close(fd);
  threads_used = 0;
  while (counts[threads_used].thread_id != 0) ++threads_used;
}

static void take_slot(void) {
  uint32_t slot = atomic_fetch_add(&threads_used, 1);
  if (slot >= MAX_THREADS) abort();
  own = &counts[slot];
  own->thread_id = (uint32_t)syscall(SYS_gettid);
}

static void begin_in_child(void) {
  own = NULL;
  map_counts();
}

static void prepare(void) {
  map_counts();
  void* found = dlsym(RTLD_NEXT, "__cyg_profile_func_exit");
  memcpy((void*)&next_exit, &found, sizeof found);
  found = dlsym(RTLD_NEXT, "__cyg_profile_func_enter");
  memcpy((void*)&next_enter, &found, sizeof found);
  pthread_atfork(NULL, NULL, begin_in_child);
}

void __cyg_profile_func_enter(void* function, void* call_site);
void __cyg_profile_func_exit(void* function, void* call_site);

void __cyg_profile_func_enter(void* function, void* call_site) {
  if (next_enter == NULL) prepare();
  if (own == NULL) take_slot();
  atomic_fetch_add_explicit(&own->begun, 1, memory_order_relaxed);
  next_enter(function, call_site);
  atomic_fetch_add_explicit(&own->done, 1, memory_order_relaxed);
}

void __cyg_profile_func_exit(void* function, void* call_site) {
  if (next_enter == NULL) prepare();
  if (own == NULL) take_slot();
  atomic_fetch_add_explicit(&own->begun, 1, memory_order_relaxed);
  next_exit(function, call_site);
  atomic_fetch_add_explicit(&own->done, 1, memory_order_relaxed);
}
