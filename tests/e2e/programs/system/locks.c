/* A thread waits for locks that others have: it prints how often which of them had which. An owner
 * keeps its lock until someone waits for it, as glibc's mutexes say, so each wait is one.
 *
 * Usage: locks ROUNDS
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kOwners = 3, kMutexes = 2, kWaitedFor = 2 };

static pthread_mutex_t mutexes[kMutexes] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static sem_t begin[kOwners];
static sem_t taken;
static sem_t done;
static int numbers[kOwners];
static int waits[kOwners][kMutexes];
static int rounds;

static void hold(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  sem_post(&taken);
  while (__atomic_load_n(&mutex->__data.__lock, __ATOMIC_RELAXED) != kWaitedFor) usleep(20);
  usleep(20);
  pthread_mutex_unlock(mutex);
}

static void* own(void* argument) {
  const int owner = (int)(long)argument;
  numbers[owner] = gettid();
  for (int i = owner; i < rounds; i += kOwners) {
    sem_wait(&begin[owner]);
    hold(&mutexes[i % kMutexes]);
    sem_post(&done);
  }
  return NULL;
}

static void store(pthread_mutex_t* mutex) {
  pthread_mutex_lock(mutex);
  pthread_mutex_unlock(mutex);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  rounds = atoi(argv[1]);
  pthread_t threads[kOwners];
  sem_init(&taken, 0, 0);
  sem_init(&done, 0, 0);
  for (int i = 0; i < kOwners; ++i) {
    sem_init(&begin[i], 0, 0);
    if (pthread_create(&threads[i], NULL, own, (void*)(long)i) != 0) return 1;
  }
  for (int i = 0; i < rounds; ++i) {
    sem_post(&begin[i % kOwners]);
    sem_wait(&taken);
    store(&mutexes[i % kMutexes]);
    ++waits[i % kOwners][i % kMutexes];
    sem_wait(&done);
  }
  for (int i = 0; i < kOwners; ++i) {
    pthread_join(threads[i], NULL);
    for (int k = 0; k < kMutexes; ++k) {
      printf("%d %p %d\n", numbers[i], (void*)&mutexes[k], waits[i][k]);
    }
  }
  return 0;
}
