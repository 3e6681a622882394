// A descriptor of a guest: high-numbered, close-on-exec, and checked before it is used. The host
// program may close every descriptor it sees, and open something else under the same number; then
// it is lost to us, and what has its number is not touched.
//
// Drain thread only, but for the fork functions at the end. Nothing allocates.
#pragma once

#include <sys/types.h>

namespace collect::agent {

// Descriptors are moved up to here, or to just below the process's limit: programs that count on
// low numbers, or close a range of them, keep what they expect.
inline constexpr int kDescriptorFloor = 3000;
inline constexpr int kDescriptorMargin = 24;  // below a limit that is lower than that

// Plain data, so that it can live in static storage; closing is explicit.
class Descriptor {
 public:
  bool is_open() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  // Whether it still is what was opened.
  bool is_ours() const;
  // Takes what `make()` gives, a new descriptor or -1; 0 or errno.
  template <class Make>
  int open(Make make) {
    const Changing changing;
    return adopt(make());
  }
  // Closes it if it is ours, forgets it in any case.
  void close();

 private:
  // Held while descriptors are made or closed, and by a thread that forks.
  struct Changing {
    Changing();
    ~Changing();
    Changing(const Changing&) = delete;
    Changing& operator=(const Changing&) = delete;
  };

  int adopt(int low_fd);

  int fd_ = -1;
  mode_t type_ = 0;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

// fork takes a copy of every descriptor. Between these two calls none is half-made, so that the
// child knows, and can close, all of them. Called around fork on the forking thread.
void descriptors_before_fork();
void descriptors_after_fork();

}  // namespace collect::agent
