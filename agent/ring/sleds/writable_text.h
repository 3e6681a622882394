// Code that can be written to for a while.
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

#include "agent/platform/system.h"

namespace collect::agent {

class WritableText {
 public:
  WritableText(uint64_t begin, uint64_t end) {
    const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
    begin_ = begin & ~(page - 1);
    bytes_ = ((end + page - 1) & ~(page - 1)) - begin_;
    // Other threads run this code, so it can't stop being executable.
    error_ = protect(PROT_READ | PROT_WRITE | PROT_EXEC);
  }
  ~WritableText() {
    if (error_ == 0) (void)protect(PROT_READ | PROT_EXEC);
  }
  WritableText(const WritableText&) = delete;
  WritableText& operator=(const WritableText&) = delete;
  int error() const { return error_; }

 private:
  int protect(int protection) const {
    return sys::mprotect(reinterpret_cast<void*>(begin_), bytes_, protection) == 0 ? 0 : errno;
  }

  uint64_t begin_;
  uint64_t bytes_;
  int error_;
};

}  // namespace collect::agent
