// Memory that a virtual machine has never used, or gave back to its host while it lay free, is paid
// for at its first touch: some ten times what it costs to write it. What is measured first, or
// writes most, would pay for that.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace collect::bench {

// Has so much memory touched and free, for what is measured next. It does not stay so for long.
inline void warm_memory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  (void)madvise(memory, bytes, MADV_POPULATE_WRITE);
  (void)munmap(memory, bytes);
}

}  // namespace collect::bench
