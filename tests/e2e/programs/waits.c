// Functions that compute, sleep, wait for a lock, for a pipe and for a processor; each says how
// long it took and how much of that its thread was on a processor, by the system's clocks.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define NOT_RECORDED __attribute__((no_instrument_function))

static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static int g_pipe[2];

NOT_RECORDED static long long now_ns(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

NOT_RECORDED static void spin_ms(int ms) {
  const long long until = now_ns(CLOCK_THREAD_CPUTIME_ID) + ms * 1000000LL;
  while (now_ns(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

NOT_RECORDED static void sleep_ms(int ms) {
  const struct timespec pause = {0, ms * 1000000L};
  nanosleep(&pause, NULL);
}

struct measured {
  long long wall_ns;
  long long cpu_ns;
};

NOT_RECORDED static struct measured begin(void) {
  const struct measured now = {now_ns(CLOCK_BOOTTIME), now_ns(CLOCK_THREAD_CPUTIME_ID)};
  return now;
}

NOT_RECORDED static void end(const char* name, struct measured since) {
  const struct measured now = begin();
  printf("%s %lld %lld\n", name, now.wall_ns - since.wall_ns, now.cpu_ns - since.cpu_ns);
}

void computes(void) {
  const struct measured since = begin();
  spin_ms(200);
  end("computes", since);
}

void sleeps(void) {
  const struct measured since = begin();
  for (int i = 0; i < 50; ++i) {
    sleep_ms(2);
    spin_ms(1);
  }
  end("sleeps", since);
}

void waits_for_lock(void) {
  const struct measured since = begin();
  pthread_mutex_lock(&g_lock);
  pthread_mutex_unlock(&g_lock);
  end("waits_for_lock", since);
}

void waits_for_pipe(void) {
  const struct measured since = begin();
  char byte;
  if (read(g_pipe[0], &byte, 1) != 1) puts("no byte");
  end("waits_for_pipe", since);
}

// Beside another one on the same processor.
void waits_for_processor(void) {
  const struct measured since = begin();
  spin_ms(150);
  end("waits_for_processor", since);
}

static void* other(void* unused) {
  sleep_ms(100);
  pthread_mutex_unlock(&g_lock);
  sleep_ms(100);
  if (write(g_pipe[1], "", 1) != 1) puts("no room");
  return unused;
}

static void* rival(void* unused) {
  waits_for_processor();
  return unused;
}

int main(void) {
  if (pipe(g_pipe) != 0) return 1;
  computes();
  sleeps();
  // The other thread gives the lock back, which the C library allows for one of this kind.
  pthread_mutex_lock(&g_lock);
  pthread_t thread;
  pthread_create(&thread, NULL, other, NULL);
  waits_for_lock();
  waits_for_pipe();
  pthread_join(thread, NULL);
  cpu_set_t first;
  sched_getaffinity(0, sizeof first, &first);
  for (int i = 0, found = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &first) && found++ > 0) CPU_CLR(i, &first);
  }
  pthread_t rivals[2];
  for (int i = 0; i < 2; ++i) {
    pthread_create(&rivals[i], NULL, rival, NULL);
    pthread_setaffinity_np(rivals[i], sizeof first, &first);
  }
  for (int i = 0; i < 2; ++i) pthread_join(rivals[i], NULL);
  return 0;
}
