// What functions of the C library return and set when they wait, are refused, interrupted or left
// in the middle: one line each, the same whether someone records the calls or not.
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int g_pipe[2];
static sigjmp_buf g_away;

// Its name, its result, and what it left in errno.
#define SAY(name, call)                      \
  do {                                       \
    errno = 0;                               \
    const long got = (call);                 \
    printf("%s %ld %d\n", name, got, errno); \
  } while (0)

static struct timespec in_ms(int ms) {
  struct timespec when;
  clock_gettime(CLOCK_REALTIME, &when);
  when.tv_nsec += ms * 1000000L;
  when.tv_sec += when.tv_nsec / 1000000000;
  when.tv_nsec %= 1000000000;
  return when;
}

static void locks(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  const int kinds[] = {PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK};
  for (int i = 0; i < 3; ++i) {
    pthread_mutex_t lock;
    pthread_mutexattr_settype(&kind, kinds[i]);
    pthread_mutex_init(&lock, &kind);
    SAY("lock", pthread_mutex_lock(&lock));
    if (i != 0) SAY("again", pthread_mutex_lock(&lock));
    const struct timespec soon = in_ms(5);
    if (i == 0) SAY("timedlock", pthread_mutex_timedlock(&lock, &soon));
    if (i == 1) pthread_mutex_unlock(&lock);
    SAY("unlock", pthread_mutex_unlock(&lock));
  }
  pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;
  const struct timespec later = in_ms(5);
  const clockid_t no_clock = 99;
  SAY("clocklock", pthread_mutex_clocklock(&free_lock, no_clock, &later));
  pthread_rwlock_t shared = PTHREAD_RWLOCK_INITIALIZER;
  SAY("rdlock", pthread_rwlock_rdlock(&shared));
  SAY("rdlock", pthread_rwlock_rdlock(&shared));
  pthread_rwlock_unlock(&shared);
  pthread_rwlock_unlock(&shared);
  SAY("wrlock", pthread_rwlock_wrlock(&shared));
  SAY("wrlock", pthread_rwlock_wrlock(&shared));
  sem_t free;
  sem_init(&free, 0, 1);
  SAY("sem_wait", sem_wait(&free));
  const struct timespec soon = in_ms(5);
  SAY("sem_timedwait", sem_timedwait(&free, &soon));
}

static void* dies_with_lock(void* lock) {
  pthread_mutex_lock(lock);
  return NULL;
}

static void robust_lock(void) {
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t lock;
  pthread_mutex_init(&lock, &kind);
  pthread_t thread;
  pthread_create(&thread, NULL, dies_with_lock, &lock);
  pthread_join(thread, NULL);
  SAY("robust", pthread_mutex_lock(&lock));
  pthread_mutex_consistent(&lock);
  pthread_mutex_unlock(&lock);
}

static void condition(void) {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  pthread_mutex_lock(&lock);
  const struct timespec soon = in_ms(5);
  SAY("cond_timedwait", pthread_cond_timedwait(&never, &lock, &soon));
  pthread_mutex_unlock(&lock);
}

static void interrupted(int number) {
  (void)number;
}

static void jumps(int number) {
  (void)number;
  siglongjmp(g_away, 1);
}

static void alarm_in_ms(int ms, void (*handler)(int)) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  timer_create(CLOCK_MONOTONIC, NULL, &timer);
  const struct itimerspec once = {{0, 0}, {0, ms * 1000000L}};
  timer_settime(timer, 0, &once, NULL);
}

static void interruptions(void) {
  char byte;
  alarm_in_ms(5, interrupted);
  SAY("read", read(g_pipe[0], &byte, 1));
  alarm_in_ms(5, interrupted);
  const struct timespec pause = {10, 0};
  SAY("nanosleep", nanosleep(&pause, NULL));
  if (sigsetjmp(g_away, 1) == 0) {
    alarm_in_ms(5, jumps);
    SAY("never", read(g_pipe[0], &byte, 1));
  }
  puts("away");
}

static void note(void* unused) {
  (void)unused;
  puts("cleaned up");
}

static void* waits(void* unused) {
  char byte;
  pthread_cleanup_push(note, NULL);
  SAY("never", read(g_pipe[0], &byte, 1));
  pthread_cleanup_pop(0);
  return unused;
}

static void cancellation(void) {
  pthread_t thread;
  void* result = NULL;
  pthread_create(&thread, NULL, waits, NULL);
  usleep(5000);
  pthread_cancel(thread);
  pthread_join(thread, &result);
  SAY("cancelled", result == PTHREAD_CANCELED);
}

static void descriptors(void) {
  char bytes[8];
  SAY("read", read(-1, bytes, 1));
  SAY("write", write(g_pipe[1], "abc", 3));
  SAY("read", read(g_pipe[0], bytes, sizeof bytes));
  struct pollfd one = {g_pipe[0], POLLIN, 0};
  SAY("poll", poll(&one, 1, 5));
  struct timeval time = {0, 5000};
  fd_set set;
  FD_ZERO(&set);
  FD_SET(g_pipe[0], &set);
  SAY("select", select(g_pipe[0] + 1, &set, NULL, NULL, &time));
  int pair[2];
  socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  SAY("sendto", sendto(pair[0], "abcd", 4, MSG_NOSIGNAL, NULL, 0));
  socklen_t length = 0;
  SAY("recvfrom", recvfrom(pair[1], bytes, sizeof bytes, 0, NULL, &length));
  SAY("recv", recv(pair[1], bytes, sizeof bytes, MSG_DONTWAIT));
}

static void children(void) {
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    usleep(5000);
    _exit(3);
  }
  int status = 0;
  const pid_t ended = waitpid(child, &status, 0);
  SAY("waitpid", ended == child ? WEXITSTATUS(status) : -1);
  SAY("waitpid", waitpid(-1, &status, 0));
}

int main(void) {
  if (pipe(g_pipe) != 0) return 1;
  locks();
  robust_lock();
  condition();
  interruptions();
  cancellation();
  descriptors();
  children();
  return 0;
}
