// The memory of another process, through /proc/PID/mem: it may be written to even where the process
// itself may not, which makes a private copy of a file's page.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/core/bytes.h"
#include "formats/core/result.h"

namespace collect::inject {

class ProcessMemory {
 public:
  // kNotFound: the process is gone. kPermission.
  static Result<ProcessMemory> open(pid_t pid);
  ProcessMemory(ProcessMemory&& other) noexcept : file_(other.file_) { other.file_ = -1; }
  ProcessMemory& operator=(ProcessMemory&&) = delete;
  ~ProcessMemory();

  // All of it, or an error: kNotFound when the process is gone, kIo otherwise.
  Status read(uint64_t address, void* to, size_t bytes) const;
  Status write(uint64_t address, const void* from, size_t bytes) const;

  template <class T>
  Result<T> get(uint64_t address) const {
    T value{};
    COLLECT_TRY(read(address, &value, sizeof value));
    return value;
  }

 private:
  explicit ProcessMemory(int file) : file_(file) {}
  int file_;
};

}  // namespace collect::inject
