/* The independent counter: defines the two hooks of -finstrument-functions in the program itself,
 * keeps count of what every thread called, and passes each call on to the next definition, which is
 * the preloaded agent's. What it counted is what the agent must have recorded. With COUNT_AND_KEEP
 * nothing is passed on: the agent hears of the same calls in another way.
 *
 * At the end of the process, $COUNT_FILE.<pid> gets one line for each thread,
 *     thread TID CALLS RETURNS HASH
 * and, with $COUNT_MODULES set, one line for each function of a library that was called,
 *     function BASENAME OFFSET CALLS
 *
 * C, because templates shared with instrumented C++ sources would be instrumented themselves. The
 * counters are bumped with single instructions that a signal handler cannot tear.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_THREADS 4096
#define MAX_FUNCTIONS 256
#define MAX_MODULES 64
#define FNV_PRIME 1099511628211ull
#define FNV_START 14695981039346656037ull

typedef void (*hook)(void*, void*);

struct thread_count {
  _Atomic uint64_t calls;
  _Atomic uint64_t returns;
  _Atomic uint64_t hash; /* over (offset << 1 | is return), in order; of use without signals only */
  _Atomic uint32_t thread_id;
};

struct function_count {
  char module[64];
  uintptr_t offset;
  _Atomic uint64_t calls;
};

static struct thread_count counts[MAX_THREADS];
static _Atomic uint32_t threads_used;
static struct function_count functions[MAX_FUNCTIONS];
static uint32_t functions_used;
static pthread_mutex_t functions_mutex = PTHREAD_MUTEX_INITIALIZER;
static __thread struct thread_count* own;
static _Atomic(hook) next_enter, next_exit;
static _Atomic uintptr_t load_base;
/* Of the program and the libraries that it was started with. An inlined copy of a function of the
 * C++ library reports the library's address: its place is an offset from that library's base. */
static struct {
  uintptr_t begin, end, base;
} modules[MAX_MODULES];
static uint32_t modules_used;
static _Atomic int count_modules;

static int note_module(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  if (modules_used == MAX_MODULES) return 1;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;
    if (modules[modules_used].end == 0) modules[modules_used].begin = begin;
    modules[modules_used].end = end;
  }
  modules[modules_used].base = info->dlpi_addr;
  ++modules_used;
  return 0;
}

static void forget_parents_counts(void) {
  memset(counts, 0, sizeof counts);
  if (own != NULL) {
    own = &counts[0];
    own->thread_id = (uint32_t)syscall(SYS_gettid);
    own->hash = FNV_START;
    threads_used = 1;
  }
}

#ifdef COUNT_AND_KEEP
static void pass_nowhere(void* function, void* call_site) {
  (void)function;
  (void)call_site;
}
#endif

static void prepare(void) {
  dl_iterate_phdr(note_module, NULL);
  load_base = modules[0].base; /* the main executable comes first */
  count_modules = getenv("COUNT_MODULES") != NULL;
  /* ISO C has no cast from an object to a function pointer; POSIX promises the same bits. */
#ifdef COUNT_AND_KEEP
  next_exit = pass_nowhere;
  next_enter = pass_nowhere;
#else
  void* found = dlsym(RTLD_NEXT, "__cyg_profile_func_exit");
  memcpy((void*)&next_exit, &found, sizeof found);
  found = dlsym(RTLD_NEXT, "__cyg_profile_func_enter");
  memcpy((void*)&next_enter, &found, sizeof found);
#endif
  pthread_atfork(NULL, NULL, forget_parents_counts);
}

static struct thread_count* own_counts(void) {
  if (own == NULL) {
    uint32_t slot = atomic_fetch_add(&threads_used, 1);
    if (slot >= MAX_THREADS) abort();
    counts[slot].hash = FNV_START;
    counts[slot].thread_id = (uint32_t)syscall(SYS_gettid);
    own = &counts[slot];
  }
  return own;
}

static void count_function(void* function) {
  Dl_info found;
  if (dladdr(function, &found) == 0 || (uintptr_t)found.dli_fbase == load_base) return;
  const char* slash = strrchr(found.dli_fname, '/');
  const char* module = slash != NULL ? slash + 1 : found.dli_fname;
  uintptr_t offset = (uintptr_t)function - (uintptr_t)found.dli_fbase;
  pthread_mutex_lock(&functions_mutex);
  uint32_t i = 0;
  while (i < functions_used &&
         (functions[i].offset != offset || strcmp(functions[i].module, module) != 0)) {
    ++i;
  }
  if (i == functions_used) {
    if (functions_used == MAX_FUNCTIONS) abort();
    snprintf(functions[i].module, sizeof functions[i].module, "%s", module);
    functions[i].offset = offset;
    ++functions_used;
  }
  functions[i].calls++;
  pthread_mutex_unlock(&functions_mutex);
}

static uintptr_t offset_of(uintptr_t address) {
  for (uint32_t i = 0; i < modules_used; ++i) {
    if (address >= modules[i].begin && address < modules[i].end) return address - modules[i].base;
  }
  return address - load_base;
}

static void roll(struct thread_count* mine, void* function, uint64_t is_return) {
  uint64_t value = ((uint64_t)offset_of((uintptr_t)function) << 1) | is_return;
  uint64_t hash = atomic_load_explicit(&mine->hash, memory_order_relaxed);
  atomic_store_explicit(&mine->hash, (hash ^ value) * FNV_PRIME, memory_order_relaxed);
}

void __cyg_profile_func_enter(void* function, void* call_site);
void __cyg_profile_func_exit(void* function, void* call_site);

void __cyg_profile_func_enter(void* function, void* call_site) {
  if (next_enter == NULL) prepare();
  struct thread_count* mine = own_counts();
  atomic_fetch_add_explicit(&mine->calls, 1, memory_order_relaxed);
  roll(mine, function, 0);
  if (count_modules) count_function(function);
  next_enter(function, call_site);
}

void __cyg_profile_func_exit(void* function, void* call_site) {
  if (next_enter == NULL) prepare();
  struct thread_count* mine = own_counts();
  atomic_fetch_add_explicit(&mine->returns, 1, memory_order_relaxed);
  roll(mine, function, 1);
  next_exit(function, call_site);
}

/* The last of the program's own destructors: nothing instrumented runs after it. */
__attribute__((destructor(101))) static void write_counts(void) {
  const char* path = getenv("COUNT_FILE");
  if (path == NULL) return;
  char full[4096];
  snprintf(full, sizeof full, "%s.%d", path, (int)getpid());
  FILE* file = fopen(full, "we");
  if (file == NULL) return;
  uint32_t used = threads_used;
  for (uint32_t i = 0; i < used; ++i) {
    fprintf(file, "thread %u %llu %llu %016llx\n", counts[i].thread_id,
            (unsigned long long)counts[i].calls, (unsigned long long)counts[i].returns,
            (unsigned long long)counts[i].hash);
  }
  for (uint32_t i = 0; i < functions_used; ++i) {
    fprintf(file, "function %s %llx %llu\n", functions[i].module,
            (unsigned long long)functions[i].offset, (unsigned long long)functions[i].calls);
  }
  fclose(file);
}
