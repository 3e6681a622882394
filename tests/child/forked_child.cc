#include "tests/child/forked_child.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace collect::child {

ForkedChild::ForkedChild(const std::function<int()>& work) {
  start(work);
}

ForkedChild::ForkedChild(const std::function<int(const Ready& ready)>& work) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    set_not_started(std::strerror(errno));
    return;
  }
  start([&] {
    close(ends[0]);
    return work([&] { (void)!write(ends[1], "", 1); });
  });
  close(ends[1]);
  char byte = 0;
  was_ready_ = read(ends[0], &byte, 1) == 1;
  close(ends[0]);
}

void ForkedChild::start(const std::function<int()>& work) {
  std::fflush(nullptr);  // or the child writes it once more
  const pid_t child = fork();
  if (child < 0) return set_not_started(std::strerror(errno));
  if (child != 0) return set_started(child, "forked child " + std::to_string(child), "");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int code = work();
  std::fflush(nullptr);
  _exit(code);
}

}  // namespace collect::child
