// A process that runs code of the test itself.
#pragma once

#include <unistd.h>

#include <functional>

#include "tests/child/child_process.h"

namespace collect::child {

// Forked; it ends with the object at the latest, and with the thread that made it.
class ForkedChild : public Child {
 public:
  using Ready = std::function<void()>;

  // What `work` returns is the exit code.
  explicit ForkedChild(const std::function<int()>& work);
  // Returns when `work` has called `ready`, or has ended.
  explicit ForkedChild(const std::function<int(const Ready& ready)>& work);

  bool was_ready() const { return was_ready_; }

 private:
  void start(const std::function<int()>& work);

  bool was_ready_ = false;
};

// For a child that only has to be there.
[[noreturn]] inline int pause_until_killed() {
  for (;;) ::pause();
}

// How a process ends that does this.
inline Ending forked(const std::function<int()>& work) {
  return ForkedChild(work).wait();
}

}  // namespace collect::child
