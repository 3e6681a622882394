/* Threads with names that are set after their first event, in every way that there is; and names of
 * every kind. Each thread prints nothing and calls job(). */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNTRACED __attribute__((no_instrument_function))

__attribute__((noinline)) void job(void) {
  __asm__ volatile("");
}

static const char* const kOwnNames[] = {"net/rx \"0\"", "w\xc3\xb6rker", "bad\xff\xfe",
                                        "tab\there",    "new\nline",     "longest-15-byte",
                                        "<b>&amp;"};
enum { kOwn = sizeof kOwnNames / sizeof *kOwnNames };

static sem_t renamed;
static sem_t forever;

/* The name comes after the first event, and the thread ends at once. */
static void* own(void* name) {
  job();
  pthread_setname_np(pthread_self(), name);
  return NULL;
}

static void* late(void* name) {
  (void)name;
  job();
  prctl(PR_SET_NAME, "first", 0, 0, 0);
  job();
  prctl(PR_SET_NAME, "late", 0, 0, 0);
  return NULL;
}

/* These live until the process ends. */
static void* by_system_call(void* name) {
  job();
  syscall(SYS_prctl, PR_SET_NAME, name);
  sem_post(&renamed);
  sem_wait(&forever);
  return NULL;
}

static void* by_another(void* name) {
  (void)name;
  job();
  sem_post(&renamed);
  sem_wait(&forever);
  return NULL;
}

UNTRACED static pthread_t start(void* (*work)(void*), const char* name) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, (void*)name);
  return thread;
}

int main(void) {
  sem_init(&renamed, 0, 0);
  sem_init(&forever, 0, 0);
  for (int i = 0; i < kOwn; ++i) pthread_join(start(own, kOwnNames[i]), NULL);
  pthread_join(start(late, NULL), NULL);
  start(by_system_call, "by-system-call");
  const pthread_t other = start(by_another, NULL);
  sem_wait(&renamed);
  sem_wait(&renamed);
  pthread_setname_np(other, "by-another");
  prctl(PR_SET_NAME, "renamed-main", 0, 0, 0);
  puts("named");
  return 0;
}
