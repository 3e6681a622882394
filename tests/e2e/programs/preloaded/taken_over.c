// Preloaded beside the agent: a library that has taken over what the C library asks the system, as
// those do that fake clocks, files or users. No one may come here by way of the agent.
//   TAKEN_OVER=abort  any call ends the process
//   TAKEN_OVER=lock   any call waits for ever, as for a lock that the program holds
// Compiled without knowledge of the C library's declarations, since one body serves all.
#define CAUGHT(name) \
  long name(void) {  \
    caught(#name);   \
    return -1;       \
  }

extern char* getenv(const char*);

static long call(long number, long first, long second, long third) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
#else
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = first;
  register long x1 __asm__("x1") = second;
  register long x2 __asm__("x2") = third;
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#endif
}

#if defined(__x86_64__)
enum { kWrite = 1, kPause = 34, kExitGroup = 231 };
#else
enum { kWrite = 64, kPause = 73 /* ppoll of nothing */, kExitGroup = 94 };
#endif

static void caught(const char* name) {
  const char* const how = getenv("TAKEN_OVER");
  long bytes = 0;
  while (name[bytes] != '\0') ++bytes;
  call(kWrite, 2, (long)name, bytes);
  call(kWrite, 2, (long)"\n", 1);
  if (how != 0 && how[0] == 'l') {
    for (;;) call(kPause, 0, 0, 0);
  }
  call(kExitGroup, 99, 0, 0);
}

// clang-format off
// Files.
CAUGHT(open) CAUGHT(open64) CAUGHT(openat) CAUGHT(close) CAUGHT(read) CAUGHT(write) CAUGHT(pread)
CAUGHT(pread64) CAUGHT(pwrite) CAUGHT(pwrite64) CAUGHT(fstat) CAUGHT(fstat64) CAUGHT(stat)
CAUGHT(stat64) CAUGHT(lstat) CAUGHT(lstat64) CAUGHT(fstatat) CAUGHT(statx) CAUGHT(access)
CAUGHT(readlink) CAUGHT(unlink) CAUGHT(rename) CAUGHT(ftruncate) CAUGHT(fcntl) CAUGHT(fcntl64)
CAUGHT(dup2) CAUGHT(dup3) CAUGHT(chdir) CAUGHT(ioctl) CAUGHT(fopen)
// Clocks and waiting.
CAUGHT(clock_gettime) CAUGHT(gettimeofday) CAUGHT(time) CAUGHT(nanosleep) CAUGHT(clock_nanosleep)
CAUGHT(poll) CAUGHT(ppoll) CAUGHT(select) CAUGHT(sched_yield) CAUGHT(usleep) CAUGHT(sleep)
CAUGHT(pthread_join) CAUGHT(pthread_mutex_lock) CAUGHT(pthread_setname_np)
CAUGHT(pthread_setcancelstate) CAUGHT(sem_wait) CAUGHT(sem_post)
// Sockets.
CAUGHT(socket) CAUGHT(connect) CAUGHT(bind) CAUGHT(listen) CAUGHT(accept) CAUGHT(accept4)
CAUGHT(send) CAUGHT(sendto) CAUGHT(sendmsg) CAUGHT(recv) CAUGHT(recvfrom) CAUGHT(recvmsg)
CAUGHT(getsockname) CAUGHT(getpeername) CAUGHT(getsockopt) CAUGHT(setsockopt)
// Memory. The dynamic linker and the C library have mmap of their own.
CAUGHT(mmap) CAUGHT(mmap64) CAUGHT(munmap) CAUGHT(mprotect) CAUGHT(mremap) CAUGHT(madvise)
// Processes and users.
CAUGHT(syscall) CAUGHT(getpid) CAUGHT(getppid) CAUGHT(gettid) CAUGHT(getuid) CAUGHT(geteuid)
CAUGHT(kill) CAUGHT(tgkill) CAUGHT(prctl) CAUGHT(setsid) CAUGHT(uname) CAUGHT(getrandom)
CAUGHT(getrlimit) CAUGHT(setrlimit) CAUGHT(prlimit) CAUGHT(getrusage) CAUGHT(waitpid) CAUGHT(wait4)
CAUGHT(fork) CAUGHT(clone) CAUGHT(sigaltstack)
