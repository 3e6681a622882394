// Code that can be written to for a while.
#pragma once

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

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
  // Not through the C library, in whose place the program may have put something of its own.
  int protect(int protection) const {
    return syscall(SYS_mprotect, begin_, bytes_, protection) == 0 ? 0 : errno;
  }

  uint64_t begin_;
  uint64_t bytes_;
  int error_;
};

}  // namespace collect::agent
