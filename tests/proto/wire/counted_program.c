/* A program that counts its own calls, for an agent to record: prints how many there were. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_ulong calls;

__attribute__((noinline)) static int leaf(int n) {
  atomic_fetch_add(&calls, 1);
  return n + 1;
}

__attribute__((noinline)) static int branch(int depth) {
  atomic_fetch_add(&calls, 1);
  return depth == 0 ? leaf(depth) : branch(depth - 1) + leaf(depth);
}

__attribute__((noinline)) static void* work(void* times) {
  atomic_fetch_add(&calls, 1);
  for (long n = (long)times; n > 0; --n) branch(4);
  return NULL;
}

int main(int count, char** arguments) {
  atomic_fetch_add(&calls, 1);
  pthread_t threads[3];
  const long times = count > 1 ? atol(arguments[1]) : 100;
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void*)(times * (i + 1)));
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  work((void*)times);
  printf("%lu\n", atomic_load(&calls));
  return 0;
}
