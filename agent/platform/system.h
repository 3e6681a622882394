// System calls of the agent, made directly: another library may have replaced a function of the C
// library (libfaketime's clocks, fakeroot's files), and its function gives wrong answers, waits for
// a lock, or is not ready yet. Names, arguments and results are those of the C library's functions,
// errno too.
//
// Any thread; nothing allocates. On Linux each is one system call, and the clocks are the kernel's
// code in this process (system_clock_linux.cc). On Apple's systems calls have no stable numbers:
// there they are the C library's.
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "formats/core/text/sanitized.h"

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#endif
#include <sched.h>
#include <signal.h>
#include <stdio.h>

// A sanitizer knows what the C library's functions read and write, and what the kernel does not
// say.
#if !defined(__linux__) || COLLECT_SANITIZER_RUNTIME
#define COLLECT_SYSTEM_BY_LIBRARY 1
#endif

namespace collect::agent::sys {

#if defined(__linux__)

[[gnu::always_inline]] inline long enter_kernel(long number, long first, long second, long third,
                                                long fourth, long fifth, long sixth) {
#if defined(__x86_64__)
  long result;
  register long r10 asm("r10") = fourth;
  register long r8 asm("r8") = fifth;
  register long r9 asm("r9") = sixth;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = first;
  register long x1 asm("x1") = second;
  register long x2 asm("x2") = third;
  register long x3 asm("x3") = fourth;
  register long x4 asm("x4") = fifth;
  register long x5 asm("x5") = sixth;
  asm volatile("svc #0"
               : "+r"(x0)
               : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
               : "memory");
  return x0;
#else
#error "no system calls known for this architecture"
#endif
}

// A system call's result as the C library gives it: -1 and errno.
inline long checked(long result) {
  constexpr long kMostErrors = 4095;
  if (result >= 0 || result < -kMostErrors) return result;
  errno = static_cast<int>(-result);
  return -1;
}

template <class T>
long word(T* value) {
  return reinterpret_cast<long>(value);
}
inline long word(decltype(nullptr)) {
  return 0;
}
template <class T>
long word(T value) {
  return static_cast<long>(value);
}

inline long words(long number, long first = 0, long second = 0, long third = 0, long fourth = 0,
                  long fifth = 0, long sixth = 0) {
  return checked(enter_kernel(number, first, second, third, fourth, fifth, sixth));
}

template <class... Arguments>
long call(long number, Arguments... arguments) {
  return words(number, word(arguments)...);
}
template <class Result, class... Arguments>
Result call_for(long number, Arguments... arguments) {
  return static_cast<Result>(call(number, arguments...));
}

// Ends this process, and nothing of the C library's end of one runs. Where a filter of system calls
// refuses that (strace leaves one in processes that it does not follow), a trap does.
[[noreturn]] inline void end_process(int code) {
  call(SYS_exit_group, code);
  __builtin_trap();
}

#endif

#if !defined(COLLECT_SYSTEM_BY_LIBRARY)

// ---- files
inline int open(const char* path, int flags, mode_t mode = 0) {
  return call_for<int>(SYS_openat, AT_FDCWD, path, flags, mode);
}
inline int close(int fd) {
  return call_for<int>(SYS_close, fd);
}
inline ssize_t read(int fd, void* to, size_t bytes) {
  return call(SYS_read, fd, to, bytes);
}
inline ssize_t write(int fd, const void* from, size_t bytes) {
  return call(SYS_write, fd, from, bytes);
}
inline ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
  return call(SYS_pread64, fd, to, bytes, at);
}
inline ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
  return call(SYS_pwrite64, fd, from, bytes, at);
}
inline int ftruncate(int fd, off_t bytes) {
  return call_for<int>(SYS_ftruncate, fd, bytes);
}
inline int fcntl(int fd, int command, long argument = 0) {
  return call_for<int>(SYS_fcntl, fd, command, argument);
}
inline int dup2(int from, int to) {
  return call_for<int>(SYS_dup3, from, to, 0);  // never of equal numbers
}
// The layout of struct stat is the kernel's on both architectures.
inline int fstat(int fd, struct stat* found) {
  return call_for<int>(SYS_fstat, fd, found);
}
inline int stat(const char* path, struct stat* found) {
  return call_for<int>(SYS_newfstatat, AT_FDCWD, path, found, 0);
}
inline int lstat(const char* path, struct stat* found) {
  return call_for<int>(SYS_newfstatat, AT_FDCWD, path, found, AT_SYMLINK_NOFOLLOW);
}
inline int access(const char* path, int mode) {
  return call_for<int>(SYS_faccessat, AT_FDCWD, path, mode);
}
inline ssize_t readlink(const char* path, char* to, size_t bytes) {
  return call(SYS_readlinkat, AT_FDCWD, path, to, bytes);
}
inline int unlink(const char* path) {
  return call_for<int>(SYS_unlinkat, AT_FDCWD, path, 0);
}
inline int rename(const char* from, const char* to) {
  return call_for<int>(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}
inline int chdir(const char* path) {
  return call_for<int>(SYS_chdir, path);
}

// ---- sockets
inline int socket(int family, int type, int protocol) {
  return call_for<int>(SYS_socket, family, type, protocol);
}
inline int connect(int fd, const sockaddr* address, socklen_t bytes) {
  return call_for<int>(SYS_connect, fd, address, bytes);
}
inline int bind(int fd, const sockaddr* address, socklen_t bytes) {
  return call_for<int>(SYS_bind, fd, address, bytes);
}
inline int listen(int fd, int backlog) {
  return call_for<int>(SYS_listen, fd, backlog);
}
inline int accept(int fd, sockaddr* address, socklen_t* bytes) {
  return call_for<int>(SYS_accept4, fd, address, bytes, 0);
}
inline ssize_t send(int fd, const void* from, size_t bytes, int flags) {
  return call(SYS_sendto, fd, from, bytes, flags, nullptr, 0);
}
inline ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return call(SYS_sendmsg, fd, message, flags);
}
inline ssize_t recv(int fd, void* to, size_t bytes, int flags) {
  return call(SYS_recvfrom, fd, to, bytes, flags, nullptr, nullptr);
}
inline int getsockname(int fd, sockaddr* address, socklen_t* bytes) {
  return call_for<int>(SYS_getsockname, fd, address, bytes);
}
inline int getpeername(int fd, sockaddr* address, socklen_t* bytes) {
  return call_for<int>(SYS_getpeername, fd, address, bytes);
}
inline int getsockopt(int fd, int level, int option, void* value, socklen_t* bytes) {
  return call_for<int>(SYS_getsockopt, fd, level, option, value, bytes);
}
inline int setsockopt(int fd, int level, int option, const void* value, socklen_t bytes) {
  return call_for<int>(SYS_setsockopt, fd, level, option, value, bytes);
}
inline int poll(pollfd* waiting, nfds_t count, int timeout_ms) {
  timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return call_for<int>(SYS_ppoll, waiting, count, timeout_ms < 0 ? nullptr : &timeout, nullptr, 0);
}

// ---- memory
inline void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(call(SYS_mmap, at, bytes, protection, flags, fd, offset));
}
inline int munmap(void* at, size_t bytes) {
  return call_for<int>(SYS_munmap, at, bytes);
}
inline int mprotect(void* at, size_t bytes, int protection) {
  return call_for<int>(SYS_mprotect, at, bytes, protection);
}
inline int madvise(void* at, size_t bytes, int advice) {
  return call_for<int>(SYS_madvise, at, bytes, advice);
}
inline void* mremap(void* at, size_t bytes, size_t new_bytes, int flags, void* there) {
  return reinterpret_cast<void*>(call(SYS_mremap, at, bytes, new_bytes, flags, there));
}

// ---- processes, threads, the machine
inline pid_t getpid() {
  return call_for<pid_t>(SYS_getpid);
}
inline pid_t getppid() {
  return call_for<pid_t>(SYS_getppid);
}
inline uid_t geteuid() {
  return call_for<uid_t>(SYS_geteuid);
}
inline int kill(pid_t process, int signal) {
  return call_for<int>(SYS_kill, process, signal);
}
inline int sigaltstack(const stack_t* wanted, stack_t* before) {
  return call_for<int>(SYS_sigaltstack, wanted, before);
}
inline int getrusage(int whose, rusage* usage) {
  return call_for<int>(SYS_getrusage, whose, usage);
}
inline int getrlimit(int resource, rlimit* limit) {
  return call_for<int>(SYS_prlimit64, 0, resource, nullptr, limit);
}
inline int uname(utsname* name) {
  return call_for<int>(SYS_uname, name);
}
inline int sched_yield() {
  return call_for<int>(SYS_sched_yield);
}
inline int nanosleep(const timespec* time, timespec* left) {
  return call_for<int>(SYS_nanosleep, time, left);
}
// Sleeps for so long, or until someone wakes the word; not at all if it is not `value`. The word
// may be shared with another process.
inline void sleep_on(std::atomic<uint32_t>& word, uint32_t value, const timespec& time) {
  (void)call(SYS_futex, &word, FUTEX_WAIT, value, &time, nullptr, 0);
}
inline void wake(std::atomic<uint32_t>& word, uint32_t sleepers) {
  (void)call(SYS_futex, &word, FUTEX_WAKE, sleepers, nullptr, nullptr, 0);
}

// The kernel's own function in this process's memory; null: none was found, and the system call is
// made instead.
using ClockFunction = int (*)(clockid_t, timespec*);
[[gnu::visibility("hidden")]] extern ClockFunction g_clock;
// At the start.
void find_clock();
inline int clock_gettime(clockid_t clock, timespec* now) {
  if (g_clock != nullptr && g_clock(clock, now) == 0) return 0;
  return call_for<int>(SYS_clock_gettime, clock, now);
}

#else

#if defined(__linux__)
using ::chdir;
using ::dup2;
using ::mremap;
using ::rename;
#endif
using ::accept;
using ::access;
using ::bind;
using ::clock_gettime;
using ::close;
using ::connect;
using ::fcntl;
using ::fstat;
using ::ftruncate;
using ::geteuid;
using ::getpeername;
using ::getpid;
using ::getppid;
using ::getrlimit;
using ::getrusage;
using ::getsockname;
using ::getsockopt;
using ::kill;
using ::listen;
using ::lstat;
using ::madvise;
using ::mmap;
using ::mprotect;
using ::munmap;
using ::nanosleep;
using ::open;
using ::poll;
using ::pread;
using ::pwrite;
using ::read;
using ::readlink;
using ::recv;
using ::sched_yield;
using ::send;
using ::sendmsg;
using ::setsockopt;
using ::sigaltstack;
using ::socket;
using ::stat;
using ::uname;
using ::unlink;
using ::write;
inline void find_clock() {}
inline void sleep_on(std::atomic<uint32_t>&, uint32_t, const timespec& time) {
  (void)::nanosleep(&time, nullptr);
}
inline void wake(std::atomic<uint32_t>&, uint32_t) {}

#endif

// For some microseconds, without the system.
inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace collect::agent::sys
