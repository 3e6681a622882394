#include "agent/dynamic/plan_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/platform/system.h"
#include "agent/ring/recorder.h"
#include "agent/text.h"
#include "formats/patch/plan_layout.h"

namespace collect::agent {
namespace {

bool read_whole(int fd, uint8_t* to, size_t bytes) {
  for (size_t at = 0; at < bytes;) {
    const ssize_t got = sys::read(fd, to + at, bytes - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += static_cast<size_t>(got);
  }
  return true;
}

PlanFile read_open(int fd) {
  struct stat status{};
  if (sys::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
    return {nullptr, 0, "it is no file"};
  // Its bytes become code of this process: no one else may have written them.
  if ((status.st_uid != sys::geteuid() && status.st_uid != 0) ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return {nullptr, 0, "others may have written it"};
  }
  if (status.st_size <= 0 || static_cast<uint64_t>(status.st_size) > patch::kMaxPlanBytes) {
    return {nullptr, 0, "its size is not a plan's"};
  }
  const auto bytes = static_cast<size_t>(status.st_size);
  void* const memory =
      sys::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {nullptr, 0, "no memory for it"};
  PlanFile file{static_cast<const uint8_t*>(memory), bytes, nullptr};
  if (!read_whole(fd, static_cast<uint8_t*>(memory), bytes)) file.wrong = "it can't be read";
  (void)sys::mprotect(memory, bytes, PROT_READ);
  return file;
}

}  // namespace

void drop(const PlanFile& file) {
  if (file.bytes != nullptr) (void)sys::munmap(const_cast<uint8_t*>(file.bytes), file.count);
}

PlanFile read_plan(const char* folder, const PlannedModule& module) {
  static constexpr char kDigits[] = "0123456789abcdef";
  char name[2 * patch::kMaxPlanBuildId + 1] = {};
  for (uint32_t i = 0; i < module.build_id_bytes; ++i) {
    name[2 * i] = kDigits[module.build_id[i] >> 4];
    name[2 * i + 1] = kDigits[module.build_id[i] & 15];
  }
  char path[kMaxModulePath];
  Text text(path, sizeof path);
  text.add(folder).add("/").add(name);
  if (module.build_id_bytes == 0) {
    text.add(patch::kFileBegin).number(module.device).add("-").number(module.inode);
  }
  text.add(".plan");
  const int fd = sys::open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return {};
  const PlanFile file = read_open(fd);
  (void)sys::close(fd);
  return file;
}

}  // namespace collect::agent
