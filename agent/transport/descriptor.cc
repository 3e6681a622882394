#include "agent/transport/descriptor.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "agent/platform/system.h"

namespace collect::agent {
namespace {

std::atomic<uint32_t> g_changing{0};

int high_descriptor(int low_fd) {
  int floor = kDescriptorFloor;
  rlimit limit{};
  if (sys::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      limit.rlim_cur < static_cast<rlim_t>(kDescriptorFloor + kDescriptorMargin)) {
    floor = static_cast<int>(limit.rlim_cur) - kDescriptorMargin;
  }
  for (; floor > 2; floor /= 2) {
    const int high = sys::fcntl(low_fd, F_DUPFD_CLOEXEC, floor);
    if (high >= 0) return high;
  }
  return -1;
}

}  // namespace

void descriptors_before_fork() {
  uint32_t expected = 0;
  // Pairs with the release below: what the other side did to descriptors is seen.
  while (!g_changing.compare_exchange_weak(expected, 1, std::memory_order_acquire)) {
    expected = 0;
    sys::sched_yield();
  }
}
void descriptors_after_fork() {
  g_changing.store(0, std::memory_order_release);
}

Descriptor::Changing::Changing() {
  descriptors_before_fork();
}
Descriptor::Changing::~Changing() {
  descriptors_after_fork();
}

int Descriptor::adopt(int low_fd) {
  if (low_fd < 0) return errno;
  int fd = high_descriptor(low_fd);
  if (fd >= 0) {
    sys::close(low_fd);
  } else {
    fd = low_fd;  // no room above: a low number is better than none
  }
  sys::fcntl(fd, F_SETFD, FD_CLOEXEC);
  struct stat identity{};
  if (sys::fstat(fd, &identity) != 0) {
    const int error = errno;
    sys::close(fd);
    return error;
  }
  type_ = identity.st_mode & S_IFMT;
  device_ = identity.st_dev;
  inode_ = identity.st_ino;
  fd_ = fd;
  return 0;
}

bool Descriptor::is_ours() const {
  struct stat identity{};
  return fd_ >= 0 && sys::fstat(fd_, &identity) == 0 && (identity.st_mode & S_IFMT) == type_ &&
         identity.st_dev == device_ && identity.st_ino == inode_;
}

void Descriptor::close() {
  if (fd_ < 0) return;
  const Changing changing;
  if (is_ours()) sys::close(fd_);
  fd_ = -1;
}

}  // namespace collect::agent
