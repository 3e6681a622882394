#include "daemon/inject/process_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace collect::inject {
namespace {

Error failed(const char* what, uint64_t address, ssize_t got) {
  // A process without memory has ended.
  if (got == 0 || errno == ESRCH) return {Code::kNotFound, "the process has ended"};
  char where[32];
  std::snprintf(where, sizeof where, "0x%llx", static_cast<unsigned long long>(address));
  return errno_error(errno, fmt::format("{} the process's memory at {}", what, where));
}

}  // namespace

Result<ProcessMemory> ProcessMemory::open(pid_t pid) {
  const std::string path = fmt::format("/proc/{}/mem", pid);
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return errno_error(errno, path);
  return ProcessMemory(file);
}

ProcessMemory::~ProcessMemory() {
  if (file_ >= 0) ::close(file_);
}

Status ProcessMemory::read(uint64_t address, void* to, size_t bytes) const {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = ::pread(file_, static_cast<uint8_t*>(to) + at, bytes - at,
                                static_cast<off_t>(address + at));
    if (got <= 0) return failed("reading", address + at, got);
    at += static_cast<size_t>(got);
  }
  return {};
}

Status ProcessMemory::write(uint64_t address, const void* from, size_t bytes) const {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = ::pwrite(file_, static_cast<const uint8_t*>(from) + at, bytes - at,
                                 static_cast<off_t>(address + at));
    if (got <= 0) return failed("writing", address + at, got);
    at += static_cast<size_t>(got);
  }
  return {};
}

}  // namespace collect::inject
