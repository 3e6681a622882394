#pragma once

// What a planted mistake asks: is it the one that is switched on? Only sources that plant.py
// rewrote include this, never the product.
//
// MUTANT_ID names the one mistake that is on (from 1). MUTANT_REACH names a file of one byte for
// each mistake, where every one that was asked leaves a 1: a test that never reaches a mistake
// can't notice it. Any thread, any process, also within a signal handler: both are read once,
// without a lock; two threads that read them at the same time store the same values.

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mutant {

struct State {
  int active = -1;  // MUTANT_ID; 0 when none is on, -1 before it was read
  int reach_size = 0;
  volatile char* reach = nullptr;
};
inline State state;

inline void read_environment() {
  if (const char* path = ::getenv("MUTANT_REACH")) {
    const int file = ::open(path, O_RDWR | O_CLOEXEC);
    struct stat status{};
    if (file >= 0 && ::fstat(file, &status) == 0) {
      const auto size = static_cast<size_t>(status.st_size);
      void* bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (bytes != MAP_FAILED) {
        state.reach_size = static_cast<int>(size);
        state.reach = static_cast<volatile char*>(bytes);
      }
    }
    if (file >= 0) ::close(file);
  }
  const char* id = ::getenv("MUTANT_ID");
  state.active = id == nullptr ? 0 : ::atoi(id);
}

inline bool on(int id) {
  if (state.active < 0) read_environment();
  if (state.reach != nullptr && id < state.reach_size) state.reach[id] = 1;
  return id == state.active;
}

}  // namespace mutant
