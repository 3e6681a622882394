#pragma once

// What a planted mistake asks: is it the one that is switched on? Only sources that plant.py
// rewrote include this, never the product.
//
// MUTANT_ID names the one mistake that is on (from 1). MUTANT_REACH names a file of one byte for
// each mistake, where every one that was asked leaves a 1: a test that never reaches a mistake
// can't notice it. Any thread, any process, also within a signal handler: both are read once,
// without a lock, before main() wherever that is early enough; two threads that read them at the
// same time store the same values.
//
// A process that was given an empty environment (collect-symbolizer) takes both from that of its
// parent, and does so before it gives up what that needs. A forked child may have given up the
// mapping of MUTANT_REACH, as the agent's drain process does, so it writes to the file.
//
// Needs the C library alone: the agent is linked without that of C++.

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mutant {

struct State {
  int active = -1;  // MUTANT_ID; 0 when none is on, -1 before it was read
  int reach_size = 0;
  volatile char* reach = nullptr;
  const volatile char* is_first = nullptr;  // 0 in a forked child
  char path[512] = {};
  unsigned char noted[4096] = {};
};
inline State state;

constexpr size_t kPage = 4096;

// Copies the value of NAME in what /proc shows of an environment; "" without one.
inline void copy_variable(const char* environment, size_t bytes, const char* name, char* out,
                          size_t out_bytes) {
  const size_t name_bytes = strlen(name);
  out[0] = '\0';
  for (size_t at = 0; at < bytes; at += strlen(environment + at) + 1) {
    const char* entry = environment + at;
    if (strncmp(entry, name, name_bytes) != 0 || entry[name_bytes] != '=') continue;
    const size_t length = strlen(entry + name_bytes + 1);
    if (length < out_bytes) memcpy(out, entry + name_bytes + 1, length + 1);
    return;
  }
}

// In a buffer of its own, always with a zero byte behind it; the number of bytes.
inline size_t read_environment_of_parent(char* out, size_t out_bytes) {
  char path[32] = "/proc/";
  char digits[16];
  size_t count = 0;
  for (unsigned pid = static_cast<unsigned>(::getppid()); pid != 0; pid /= 10) {
    digits[count++] = static_cast<char>('0' + pid % 10);
  }
  size_t length = strlen(path);
  while (count != 0) path[length++] = digits[--count];
  memcpy(path + length, "/environ", sizeof "/environ");
  const int file = ::open(path, O_RDONLY | O_CLOEXEC);
  size_t used = 0;
  ssize_t got = 0;
  while (file >= 0 && used + 1 < out_bytes &&
         (got = ::read(file, out + used, out_bytes - 1 - used)) > 0) {
    used += static_cast<size_t>(got);
  }
  if (file >= 0) ::close(file);
  out[used] = '\0';
  return used;
}

inline void map_reach(const char* path) {
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status{};
  if (file >= 0 && ::fstat(file, &status) == 0) {
    const auto size = static_cast<size_t>(status.st_size);
    void* bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    void* first =
        ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes != MAP_FAILED && first != MAP_FAILED && strlen(path) < sizeof state.path) {
      memcpy(state.path, path, strlen(path) + 1);
      *static_cast<char*>(first) = 1;
      (void)::madvise(first, kPage, MADV_WIPEONFORK);
      (void)::mprotect(first, kPage, PROT_READ);
      state.is_first = static_cast<const char*>(first);
      state.reach = static_cast<volatile char*>(bytes);
      state.reach_size = static_cast<int>(size);
    }
  }
  if (file >= 0) ::close(file);
}

inline void read_environment() {
  if (environ == nullptr || environ[0] == nullptr) {
    static char environment[1 << 17];
    const size_t bytes = read_environment_of_parent(environment, sizeof environment);
    char value[512];
    copy_variable(environment, bytes, "MUTANT_REACH", value, sizeof value);
    if (value[0] != '\0') map_reach(value);
    copy_variable(environment, bytes, "MUTANT_ID", value, sizeof value);
    state.active = ::atoi(value);
    return;
  }
  if (const char* path = ::getenv("MUTANT_REACH")) map_reach(path);
  const char* id = ::getenv("MUTANT_ID");
  state.active = id == nullptr ? 0 : ::atoi(id);
}

__attribute__((constructor)) inline void read_before_main() {
  if (state.active < 0) read_environment();
}

inline void note(int id) {
  if (id < 0 || id >= state.reach_size || id >= static_cast<int>(sizeof state.noted)) return;
  if (state.noted[id] != 0) return;
  state.noted[id] = 1;
  if (*state.is_first == 0) {
    const int saved_errno = errno;
    const long file = ::syscall(SYS_openat, AT_FDCWD, state.path, O_WRONLY | O_CLOEXEC);
    const bool wrote = file >= 0 && ::pwrite(static_cast<int>(file), "\1", 1, id) == 1;
    if (file >= 0) (void)::syscall(SYS_close, file);
    errno = saved_errno;
    // Another user may not open it, but has kept the mapping.
    if (wrote) return;
  }
  state.reach[id] = 1;
}

inline bool on(int id) {
  if (state.active < 0) read_environment();
  if (state.reach != nullptr) note(id);
  return id == state.active;
}

}  // namespace mutant
