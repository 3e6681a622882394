// A file descriptor that is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace collect {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }  // -1 where there is none
  int release() { return std::exchange(fd_, -1); }
  // Closes what it has, and takes `fd`.
  void reset(int fd = -1) {
    const int before = std::exchange(fd_, fd);
    if (before >= 0) ::close(before);
  }

 private:
  int fd_;
};

}  // namespace collect
