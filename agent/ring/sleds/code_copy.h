// A copy of pages of code, which is changed while the pages run and then takes their place at once.
//
// No processor runs an instruction while that is written: arm64 promises that one is seen as the
// old or as the new one for some instructions alone, and pages that are exchanged need no promise.
#pragma once

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "agent/platform/system.h"
#include "agent/ring/sleds/sled_writes.h"

namespace collect::agent {

class CodeCopy {
 public:
  // Copies the pages from that of `begin` to that of the byte before `end`.
  CodeCopy(uint64_t begin, uint64_t end) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    begin_ = begin & ~(page - 1);
    bytes_ = ((end + page - 1) & ~(page - 1)) - begin_;
    void* const memory =
        sys::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    copy_ = static_cast<uint8_t*>(memory);
    memcpy(copy_, reinterpret_cast<const void*>(begin_), bytes_);
  }
  ~CodeCopy() {
    if (copy_ != nullptr) (void)sys::munmap(copy_, bytes_);
  }
  CodeCopy(const CodeCopy&) = delete;
  CodeCopy& operator=(const CodeCopy&) = delete;

  bool is_there() const { return copy_ != nullptr; }
  uint8_t* at(uint64_t address) { return copy_ + (address - begin_); }
  // Nothing is written to it any more.
  bool make_code() {
    if (sys::mprotect(copy_, bytes_, PROT_READ | PROT_EXEC) != 0) return false;
    forget_cached(reinterpret_cast<uint64_t>(copy_), bytes_);
    return true;
  }
  // The kernel lets no thread see the pages between the old and the new ones: a thread that faults
  // meanwhile waits. False: the old ones are there.
  bool take_place() {
    void* const there = reinterpret_cast<void*>(begin_);
    if (sys::mremap(copy_, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, there) == MAP_FAILED) {
      return false;
    }
    copy_ = nullptr;
    forget_cached(begin_, bytes_);
    return true;
  }

 private:
  uint64_t begin_;
  uint64_t bytes_;
  uint8_t* copy_ = nullptr;
};

}  // namespace collect::agent
